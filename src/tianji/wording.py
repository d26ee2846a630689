"""Numbers and lists as people read them, in few characters."""

from __future__ import annotations

import math
from collections.abc import Sequence

RETURN_DIGITS = 4
"""Significant digits of a return."""


def to_count(number: float | None) -> str:
    """
    >>> to_count(41_000), to_count(950.4), to_count(1_234_567)
    ('41.0k', '950', '1.23M')
    """
    if number is None:
        return "-"
    for limit, divisor, unit in ((999.5, 1, ""), (999_500, 1e3, "k"), (999.5e6, 1e6, "M")):
        if abs(number) < limit:
            return _three_digits(number / divisor) + unit if unit else f"{number:.0f}"
    return _three_digits(number / 1e9) + "G"


def counted(number: int, noun: str) -> str:
    """
    >>> counted(1, "actor"), counted(2000, "actor")
    ('1 actor', '2,000 actors')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


def kind_of(value: object) -> str:
    """Return the name of a value's type with its article.

    >>> kind_of(3), kind_of({})
    ('an int', 'a dict')
    """
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"


def sentence(text: str) -> str:
    """Return a text that ends like a sentence, so that another one can follow.

    >>> sentence("No module named 'mujoco'"), sentence("Are you sure?")
    ("No module named 'mujoco'.", 'Are you sure?')
    """
    text = text.rstrip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _three_digits(number: float) -> str:
    digits = 2 if abs(number) < 9.995 else 1 if abs(number) < 99.95 else 0
    return f"{number:.{digits}f}"


def to_return(value: float | None) -> str:
    """
    >>> to_return(312.44), to_return(0.8571)
    ('312.4', '0.8571')
    """
    return to_value(value, RETURN_DIGITS)


def to_value(number: float | None, digits: int = 3) -> str:
    """A measured value: significant digits, no exponent where it can be avoided.

    >>> to_value(0.01234), to_value(312.44, 4), to_value(None)
    ('0.0123', '312.4', '-')
    """
    if number is None or not math.isfinite(number):
        return "-"
    has_no_exponent = abs(number) < 10**digits - 0.5  # after rounding
    return f"{number:.{digits}g}" if has_no_exponent else to_count(number)


def on_clock(seconds: str, engine: str, of: str = "") -> str:
    """Say which time a duration is of: simulated time in the virtual engine, else `of`.

    >>> on_clock("39.9 s", "local", of="training"), on_clock("39.9 s", "virtual", of="training")
    ('39.9 s of training', '39.9 s of simulated time')
    """
    of = "simulated time" if engine == "virtual" else of
    return f"{seconds} of {of}" if of else seconds


def to_percent(share: float | None) -> str:
    """
    >>> to_percent(0.654), to_percent(None)
    ('65 %', '-')
    """
    return "-" if share is None else f"{100 * share:.0f} %"


def to_duration(seconds: float | None) -> str:
    """
    >>> to_duration(72), to_duration(3.2), to_duration(7260)
    ('1:12', '0:03', '2:01:00')
    """
    if seconds is None:
        return "-"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


_AGES = (
    (120.0, 1, 0, "s"),
    (7200.0, 60, 0, "min"),
    (172_800.0, 3600, 1, "h"),
    (float("inf"), 86_400, 1, "days"),
)
"""Upper limit in seconds, seconds per unit, decimals, unit."""


def to_ago(seconds: float) -> str:
    """
    >>> to_ago(3.2), to_ago(200), to_ago(9000), to_ago(200_000)
    ('3 s ago', '3 min ago', '2.5 h ago', '2.3 days ago')
    """
    for limit, divisor, digits, unit in _AGES:
        if seconds < limit:
            return f"{seconds / divisor:.{digits}f} {unit} ago"
    raise AssertionError("nothing is older than infinity")


def to_seconds(seconds: float | None) -> str:
    """
    >>> to_seconds(4.44), to_seconds(234.5), to_seconds(None)
    ('4.4 s', '234 s', '-')
    """
    if seconds is None:
        return "-"
    return f"{seconds:.1f} s" if seconds < 99.95 else f"{seconds:,.0f} s"


def listed(words: Sequence[str], most: int | None = None) -> str:
    """
    >>> listed(["a", "b", "c"]), listed(["a", "b", "c", "d"], most=2)
    ('a, b and c', 'a, b and 2 more')
    """
    if most is not None and len(words) > most:
        words = [*words[:most], f"{len(words) - most} more"]
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
