"""What a sweep searches where nobody says it: the settings that matter most for an algorithm.

    usual_searches(config, given=[])       # learning_rate=2e-4:2e-2:log, gamma=0.95,0.98,...

The learning rate is searched around the one that the runs have. Which other settings are searched,
and which values they take, the algorithm's config record declares (AlgorithmConfig.searched).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tianji.config.run import RunConfig
from tianji.config.settings import list_settings, short_names, value_at
from tianji.sweep.space import Choices, Range, Search

LEARNING_RATE = "learning_rate"
FACTOR = 10.0
"""The learning rate is searched from a tenth of the runs' own to ten times as much."""


def usual_searches(config: RunConfig, given: Collection[str]) -> tuple[Search, ...]:
    """Return the usual searches around the values of a config. given: paths of the settings that
    the person has set, which stay as they are."""
    settings = list_settings(type(config.algorithm))
    paths = {name: setting.path for name, setting in short_names(settings).items()}
    names = (LEARNING_RATE, *config.algorithm.searched)
    found = (_search(config, name, paths[name]) for name in names if paths[name] not in given)
    return tuple(search for search in found if search is not None)


def _search(config: RunConfig, name: str, path: str) -> Search | None:
    """Return the usual search of a setting; None if the algorithm does without it here."""
    if name == LEARNING_RATE:
        return Range(path, name, *_rates(config), is_log=True)
    own = value_at(config.algorithm, name)
    if own is None:
        return None
    values = sorted({*config.algorithm.searched[name], own})
    return Choices(path, name, tuple(map(_to_text, values)))


def _rates(config: RunConfig) -> tuple[float, float]:
    """Return the lowest and the highest learning rate.

    Where rates fall in a run, none of them is below the final one. Where they rise, they may.
    """
    rate = config.algorithm.learning_rate
    final = getattr(config.algorithm, "learning_rate_final", None) or 0.0
    lowest, highest = _round(rate / FACTOR), _round(rate * FACTOR)
    return (max(lowest, final) if final <= rate else lowest), highest


def _round(value: float) -> float:
    """Return a number without the rounding error of its last digits: 3e-4 / 10 is not 3e-5."""
    return float(f"{value:.12g}")


def _to_text(value: float) -> str:
    """Return a number with all its digits, but 0 and not 0.0."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def in_words(searches: Sequence[Search]) -> str:
    """Return what is searched, for people."""
    return "; ".join(_words(one) for one in searches)


def _words(one: Search) -> str:
    if isinstance(one, Choices):
        return f"{one.name} {', '.join(one.choices)}"
    how = " by factors" if one.is_log else ""
    return f"{one.name} from {one.low:g} to {one.high:g}{how}"
