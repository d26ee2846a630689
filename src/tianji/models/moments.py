"""Running moments, and what has some: counted by the learner, added up or mixed between groups.

B: values of a batch, F: features of one value, G: groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tianji.types import Array

Doubles = NDArray[np.float64]


@dataclass
class RunningMoments:
    """Count, mean and sum of squared deviations of every value seen, in float64.

        delta = mean_b - mean,  n = count + count_b
        mean <- mean + delta * count_b / n
        m2   <- m2 + m2_b + delta^2 * count * count_b / n

    >>> RunningMoments.zeros(4)
    """

    count: float
    mean_F: Doubles
    m2_F: Doubles

    @classmethod
    def zeros(cls, num_features: int) -> RunningMoments:
        return cls(0.0, np.zeros(num_features), np.zeros(num_features))

    @classmethod
    def of(cls, values_BF: Array) -> RunningMoments:
        """Return the moments of a batch alone."""
        if not len(values_BF):
            return cls.zeros(values_BF.shape[1])
        values_BF = values_BF.astype(np.float64)
        mean_F = values_BF.mean(0)
        return cls(len(values_BF), mean_F, np.square(values_BF - mean_F).sum(0))

    def update(self, values_BF: Array) -> None:
        """Count a batch; an empty one changes nothing."""
        self.merge(RunningMoments.of(values_BF))

    def merge(self, other: RunningMoments) -> None:
        """Count all values that the other has counted."""
        if not other.count:
            return
        delta_F = other.mean_F - self.mean_F
        total = self.count + other.count
        self.mean_F = self.mean_F + delta_F * (other.count / total)
        self.m2_F = self.m2_F + other.m2_F + np.square(delta_F) * (self.count * other.count / total)
        self.count = total

    def take_mean(self, everybody: Sequence[RunningMoments]) -> None:
        """Become the mean of G moments, of which these may be one: as if each value of any of them
        had been counted here with weight 1 / G.

            n = sum(count_i),  mean <- sum(count_i * mean_i) / n
            m2 <- sum(m2_i + count_i * (mean_i - mean)^2) / G,  count <- n / G
        """
        total = sum(moments.count for moments in everybody)
        if not total:
            return
        mean_F = np.zeros_like(self.mean_F)
        for moments in everybody:
            mean_F += moments.mean_F * (moments.count / total)
        m2_F = np.zeros_like(self.m2_F)
        for moments in everybody:
            m2_F += moments.m2_F + moments.count * np.square(moments.mean_F - mean_F)
        self.count = total / len(everybody)
        self.mean_F, self.m2_F = mean_F, m2_F / len(everybody)

    @property
    def variance_F(self) -> Doubles:
        """Return the variance of the values (divided by the count); 1 before the first value."""
        if not self.count:
            return np.ones_like(self.mean_F)
        return self.m2_F / self.count


class Statistics(Protocol):
    """Running statistics whose moments groups mix (learner/combination.py)."""

    @property
    def moments(self) -> RunningMoments: ...

    def use_moments(self) -> None:
        """Use the moments, which somebody has changed."""
        ...
