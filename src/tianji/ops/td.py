"""Temporal-difference losses for Q-learning. B: items."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

Loss = Literal["huber", "mse"]


def td_loss(error_B: Tensor, loss: Loss) -> Tensor:
    """Return for each item 1/2 e^2, or Huber's loss: 1/2 e^2 up to 1, |e| - 1/2 beyond."""
    if loss == "mse":
        return 0.5 * error_B.square()
    size_B = error_B.abs()
    inside_B = size_B.clamp(max=1.0)
    return inside_B * (size_B - 0.5 * inside_B)
