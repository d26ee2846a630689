"""What a sweep searches where nobody says it: the settings that matter most for an algorithm.

    usual_searches(config, given=[])       # learning_rate=2e-4:2e-2:log, gamma=0.95,0.98,...

The learning rate is searched around the one that the runs have. Which other settings are searched,
and which values they take, the algorithm's config record declares (AlgorithmConfig.searched).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from tianji.config.run import RunConfig
from tianji.config.schema import ALGORITHM
from tianji.config.settings import list_settings, value_at
from tianji.sweep.space import Choices, Search, parse_search

LEARNING_RATE = "learning_rate"
FACTOR = 10.0
"""The learning rate is searched from a tenth of the runs' own, or from the final one if that is
larger, to ten times as much."""


def usual_searches(config: RunConfig, given: Collection[str]) -> tuple[Search, ...]:
    """Return the usual searches around the values of a config. given: paths of the settings that
    the person has set, which stay as they are."""
    settings = list_settings(type(config.algorithm))
    return tuple(
        parse_search(text, settings)
        for name, text in _texts(config)
        if f"{ALGORITHM}.{name}" not in given
    )


def _texts(config: RunConfig) -> Iterator[tuple[str, str]]:
    """Yield names of settings of the algorithm, and what `--search` would say for them."""
    rate = config.algorithm.learning_rate
    final = getattr(config.algorithm, "learning_rate_final", None) or 0.0
    lowest = max(rate / FACTOR, final)  # rates fall in a run
    yield LEARNING_RATE, f"{LEARNING_RATE}={lowest:.3g}:{rate * FACTOR:.3g}:log"
    for name, values in config.algorithm.searched.items():
        own = value_at(config.algorithm, name)
        if own is not None:  # none: the algorithm does without it here
            choices = ",".join(f"{value:g}" for value in sorted({*values, own}))
            yield name, f"{name}={choices}"


def in_words(searches: Sequence[Search]) -> str:
    """Return what is searched, for people."""
    return "; ".join(_words(one) for one in searches)


def _words(one: Search) -> str:
    if isinstance(one, Choices):
        return f"{one.name} {', '.join(one.choices)}"
    how = " by factors" if one.is_log else ""
    return f"{one.name} from {one.low:g} to {one.high:g}{how}"
