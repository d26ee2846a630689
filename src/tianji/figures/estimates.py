"""Statistics over the seeds of a figure, and their words: interquartile means with intervals.

found = estimate([0.6, 0.6, 0.7, 0.7, None])        # None: a run that never got there
found.text                                          # "0.67 s [0.6, never]"
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tianji.ops.claims import ENOUGH_SEEDS
from tianji.ops.scores import Estimate, estimate_iqm, probability_of_improvement
from tianji.types import Array
from tianji.wording import counted, to_value

NEVER = "never"
INTERQUARTILE = "interquartile means and 95 % intervals"
CURVE_DRAWS = 200
"""Draws for each place of a curve: enough for the edge of a band."""
DIGITS = 2


class Estimated(NamedTuple):
    """An interquartile mean and its 95 % interval; infinity is never. One value has no interval:
    both ends are the value."""

    low: float
    value: float
    high: float
    runs: int
    """Values, those that are never included."""
    reached: int

    @property
    def text(self) -> str:
        """The value in seconds, with its interval if it has one."""
        ends = f" [{_or_never(self.low)}, {_or_never(self.high)}]" if self.runs > 1 else ""
        return f"{_or_never(self.value)}{'' if math.isinf(self.value) else ' s'}{ends}"


def estimate(values: Sequence[float | None]) -> Estimated:
    """Return the interquartile mean of times; None is one that never came."""
    times = _times(values)
    found = estimate_iqm([times])
    value = float(found.value)
    low, high = (value if end is None else float(end) for end in (found.low, found.high))
    return Estimated(low, value, high, len(times), sum(math.isfinite(time) for time in times))


def band(curves: Array) -> tuple[Array, Array, Array]:
    """Return the lower edge, the interquartile mean and the upper edge of some curves."""
    found = estimate_iqm([curves], CURVE_DRAWS)
    low, high = (found.value if end is None else end for end in (found.low, found.high))
    return low, found.value, high


def sooner(first: Sequence[float | None], second: Sequence[float | None]) -> str:
    """Say whether the runs of the first are sooner than those of the second, and how sure that is;
    a difference can be claimed where the interval of the probability leaves out one half."""
    chance = probability_of_improvement(
        [[-time for time in _times(first)]], [[-time for time in _times(second)]]
    )
    fewest = min(len(first), len(second))
    if fewest < ENOUGH_SEEDS or chance.low is None or chance.high is None:
        return few_seeds(fewest)
    verdict = {
        (True, False): "the first is sooner",
        (False, True): "the second is sooner",
    }.get((bool(chance.low > 1 / 2), bool(chance.high < 1 / 2)), "no difference can be claimed")
    return f"{verdict} ({_chance(chance)})"


def _chance(chance: Estimate) -> str:
    ends = ", ".join(to_value(float(np.asarray(end)), DIGITS) for end in chance[1:])
    return f"probability that the first is sooner {to_value(float(chance.value), DIGITS)} [{ends}]"


def few_seeds(count: int) -> str:
    """Say that so many seeds are too few for a claim; nothing where they are enough."""
    return "" if count >= ENOUGH_SEEDS else f"{counted(count, 'seed')} each: no claim"


def _times(values: Sequence[float | None]) -> list[float]:
    return [math.inf if value is None else value for value in values]


def _or_never(seconds: float) -> str:
    return NEVER if math.isinf(seconds) else to_value(seconds, DIGITS)
