"""Means over rows of which some may not count.

weight_B: 1 for a row that counts and 0 for one that fills a fixed shape; None if all count.
"""

from __future__ import annotations

from torch import Tensor


def mean(x_B: Tensor, weight_B: Tensor | None = None) -> Tensor:
    """Return the mean of the rows that count."""
    if weight_B is None:
        return x_B.mean()
    return (x_B * weight_B).sum() / weight_B.sum()


def variance(x_B: Tensor, weight_B: Tensor | None = None) -> Tensor:
    """Return the mean square of the distance from the mean."""
    if weight_B is None:
        return x_B.var(correction=0)
    return mean((x_B - mean(x_B, weight_B)).square(), weight_B)


def deviation(x_B: Tensor, weight_B: Tensor | None = None) -> Tensor:
    """Return the root of the variance."""
    if weight_B is None:
        return x_B.std(correction=0)
    return variance(x_B, weight_B).sqrt()
