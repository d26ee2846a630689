"""Running mean and variance, merged batch by batch (Chan, Golub and LeVeque 1979).

B: values of a batch, F: features of one value.
"""

from __future__ import annotations

from dataclasses import dataclass

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

    def update(self, values_BF: Array) -> None:
        """Count a batch; an empty one changes nothing."""
        num_values = len(values_BF)
        if not num_values:
            return
        values_BF = values_BF.astype(np.float64)
        mean_F = values_BF.mean(0)
        delta_F = mean_F - self.mean_F
        total = self.count + num_values
        self.mean_F = self.mean_F + delta_F * (num_values / total)
        self.m2_F = (
            self.m2_F
            + np.square(values_BF - mean_F).sum(0)
            + np.square(delta_F) * (self.count * num_values / total)
        )
        self.count = total

    @property
    def variance_F(self) -> Doubles:
        """Return the variance of the values (divided by the count); 1 before the first value."""
        if not self.count:
            return np.ones_like(self.mean_F)
        return self.m2_F / self.count
