"""What follows from pairs of measurements: the geometric mean of their ratios and its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 10_000
SHARE = 0.9
BOUND = 0.95


@dataclass(frozen=True)
class Verdict:
    """Ratios above 1 mean that this tree is better than the other commit."""

    mean: float
    low: float
    high: float
    num_pairs: int

    @property
    def is_worse(self) -> bool:
        """Return whether the whole interval lies below the bound."""
        return self.high < BOUND

    def text(self) -> str:
        return f"{self.mean:.3f} ({self.low:.3f}-{self.high:.3f})"


def judge(ratios: Sequence[float], seed: int = 0) -> Verdict:
    """Return the geometric mean with a percentile bootstrap interval over the pairs."""
    logs = np.log(np.asarray(ratios, dtype=float))
    drawn = np.random.default_rng(seed).integers(0, len(logs), (RESAMPLES, len(logs)))
    means = logs[drawn].mean(axis=1)
    low, high = np.quantile(means, [(1 - SHARE) / 2, (1 + SHARE) / 2])
    return Verdict(math.exp(logs.mean()), math.exp(low), math.exp(high), len(logs))


def better_ratio(ours: float, theirs: float, higher_is_better: bool) -> float:
    return ours / theirs if higher_is_better else theirs / ours
