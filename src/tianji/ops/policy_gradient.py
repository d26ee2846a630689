"""PPO's objectives (Schulman et al. 2017, equation 7) and their gradients in closed form.

B: rows.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Limits(NamedTuple):
    """Where the ratio of each row stops to matter."""

    lower_B: Tensor
    upper_B: Tensor


def surrogate_limits(advantage_B: Tensor, clip: float) -> Limits:
    """min(r A, clip(r, 1 - c, 1 + c) A) = A * clamp(r, lower, upper), row by row.

    A positive advantage is bounded from above only (0, 1 + c), any other from below only
    (1 - c, infinity): a ratio that moved the wrong way is always pulled back.
    """
    is_good_B = advantage_B > 0
    infinity = torch.full_like(advantage_B, torch.inf)
    return Limits(
        torch.where(is_good_B, torch.zeros_like(advantage_B), 1.0 - clip),
        torch.where(is_good_B, 1.0 + clip, infinity),
    )


def surrogate_gradient(ratio_B: Tensor, pull_B: Tensor, limits: Limits) -> Tensor:
    """Derivative of pull * clamp(r, lower, upper) by log pi: pull * r inside, 0 outside.

    pull is minus the weighted advantage, so that this is the gradient of a loss.
    """
    bounded_B = torch.clamp(ratio_B, limits.lower_B, limits.upper_B)
    return (ratio_B * pull_B).mul_(ratio_B == bounded_B)


def clip_value(
    value_B: Tensor, old_B: Tensor, clip: float, error_B: Tensor, gradient_B: Tensor
) -> None:
    """Turn the error V - R and its gradient into those of max((V - R)^2, (V_clipped - R)^2).

    V_clipped = V_old + clamp(V - V_old, -clip, clip). Where its error is the larger one, that one
    is taken, and it does not depend on V: the gradient is 0 there. In place.
    """
    moved_B = value_B - old_B
    clipped_B = error_B + moved_B.clamp(-clip, clip).sub_(moved_B)
    is_clipped_B = clipped_B.abs() > error_B.abs()
    gradient_B.masked_fill_(is_clipped_B, 0.0)
    error_B.copy_(torch.where(is_clipped_B, clipped_B, error_B))


def approximate_kl(log_ratio: Tensor) -> Tensor:
    """Mean of (r - 1) - log r: unbiased for KL(old, new), and never negative (Schulman 2020)."""
    return (log_ratio.expm1() - log_ratio).mean()
