"""An estimate of the Kullback-Leibler divergence between two policies."""

from __future__ import annotations

from torch import Tensor


def approximate_kl(log_ratio: Tensor) -> Tensor:
    """Mean of (r - 1) - log r: unbiased for KL(old, new), and never negative (Schulman 2020)."""
    return (log_ratio.expm1() - log_ratio).mean()
