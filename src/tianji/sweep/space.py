"""What a sweep searches: settings by name, each with a range or with choices.

parse_search("learning_rate=1e-4:1e-2:log", settings)
parse_search("epochs=4:20", settings)
parse_search("activation=tanh,relu", settings)
parse_search("hidden=64,64/256,256", settings)         # choices that have commas themselves
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tianji.config.settings import Setting, canonical, find_setting, short_names
from tianji.config.values import Assignment
from tianji.errors import UsageError

LOG = "log"
FIXED = frozenset({
    "run", "seed", "env", "envs", "env_kwargs", "algorithm.name", "target_return",
    "max_env_steps", "max_wall_s", "callbacks",
})  # fmt: skip
"""Settings that all trials have in common: else their results could not be compared."""
HOW = (
    "Write --search key=low:high, --search key=low:high:log, or --search key=a,b,c (choices of a "
    "setting with several values: key=64,64/256,256)."
)


@dataclass(frozen=True, slots=True)
class Range:
    """Range("algorithm.learning_rate", "learning_rate", 1e-4, 1e-2, is_log=True)"""

    path: str
    name: str
    low: float
    high: float
    is_log: bool = False
    is_whole: bool = False
    """Only whole numbers."""

    @property
    def corners(self) -> tuple[str, ...]:
        return self.to_text(self.low), self.to_text(self.high)

    def to_text(self, value: float) -> str:
        return str(int(value)) if self.is_whole else repr(float(value))


@dataclass(frozen=True, slots=True)
class Choices:
    """Choices("model.activation", "activation", ("tanh", "relu"))"""

    path: str
    name: str
    choices: tuple[str, ...]

    @property
    def corners(self) -> tuple[str, ...]:
        return self.choices

    def to_text(self, value: str) -> str:
        return value


Search = Range | Choices


def parse_search(text: str, settings: tuple[Setting, ...]) -> Search:
    """Read one `key=...`; UsageError if there is no such setting or it cannot be searched so."""
    name, equals, values = text.partition("=")
    if not equals or not values:
        raise UsageError(f"--search {text}: has no values. {HOW}")
    setting = find_setting(f"--{canonical(name)}", settings)
    shown = next(short for short, one in short_names(settings).items() if one is setting)
    if setting.path in FIXED:
        raise UsageError(
            f"--search {text}: {shown} is the same in all trials, so that they can be compared."
        )
    is_number = not {"integer", "number"}.isdisjoint(setting.kinds)
    if is_number and ":" in values:
        return _range(text, setting, shown, values.split(":"))
    if ":" in values and "," not in values and "string" not in setting.kinds:
        raise UsageError(f"--search {text}: {shown} must be {setting.allowed}. {HOW}")
    parts = values.split("/" if "array" in setting.kinds else ",")
    choices = tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))
    if len(choices) < 2:
        raise UsageError(f"--search {text}: needs at least two different values. {HOW}")
    return Choices(setting.path, shown, choices)


def _range(text: str, setting: Setting, shown: str, parts: Sequence[str]) -> Range:
    try:
        low, high = (float(part) for part in parts[:2])
    except ValueError:
        raise UsageError(f"--search {text}: both ends must be numbers. {HOW}") from None
    if len(parts) > 3 or (len(parts) == 3 and parts[2] != LOG):
        raise UsageError(f"--search {text}: only '{LOG}' may follow the two ends. {HOW}")
    is_whole, is_log = "number" not in setting.kinds, len(parts) == 3
    if is_whole and not (low.is_integer() and high.is_integer()):
        raise UsageError(f"--search {text}: {shown} must be {setting.allowed}.")
    if low >= high:
        raise UsageError(f"--search {text}: the first end must be below the second.")
    if is_log and low <= 0:
        raise UsageError(f"--search {text}: a logarithmic range begins above 0.")
    return Range(setting.path, shown, low, high, is_log, is_whole)


def check_searches(
    searches: Sequence[Search], asked: Sequence[str], resolve: Callable[[Assignment], object]
) -> None:
    """Raise UsageError with every value that a run would refuse.

    asked: paths of the settings that the person has set. resolve: makes a config with one more
    setting; it raises UsageError.
    """
    paths = [one.path for one in searches]
    mistakes = [f"{one.name} is searched twice." for one in searches if paths.count(one.path) > 1]
    mistakes += [
        f"{one.name} is both set and searched: leave one out."
        for one in searches
        if one.path in asked
    ]
    for one in searches:
        for text in one.corners:
            try:
                resolve(Assignment(f"--{one.path}", text, is_text=True))
            except UsageError as error:
                mistakes.append(f"--search {one.name}: {error}")
    if mistakes:
        raise UsageError("\n".join(dict.fromkeys(mistakes)))
