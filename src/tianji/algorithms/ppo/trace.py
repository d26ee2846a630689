"""What PPO's updates leave behind for the metrics, computed once per batch and not per update.

R: valid rows of the batch, E: epochs made, B: rows of a minibatch, C: columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tianji.algorithms.ppo.rows import Columns
from tianji.ops.policy_gradient import approximate_kl


@dataclass(frozen=True)
class Taken:
    """What is known of a batch before its first update."""

    clip: float
    entropy_R: Tensor
    weight_R: Tensor
    target_R: Tensor
    value_R: Tensor


class Trace:
    """Room for two numbers of every row in every epoch, which updates write in place."""

    def __init__(self, num_rows: int, max_epochs: int) -> None:
        self._log_ratio_ER = torch.empty(max_epochs, num_rows)
        self._error_ER = torch.empty(max_epochs, num_rows)
        self._columns_CR: list[Tensor] = []
        self._rooms: list[tuple[Tensor, Tensor]] = []
        self.norms: list[float] = []
        """Of the gradients, one per update."""

    def begin_epoch(self, columns_CR: Tensor, sizes: list[int]) -> None:
        """The order and the parts of the rows in the epoch that begins."""
        epoch = len(self._columns_CR)
        log_ratios = torch.split(self._log_ratio_ER[epoch], sizes)
        errors = torch.split(self._error_ER[epoch], sizes)
        self._rooms = list(zip(log_ratios, errors, strict=True))[::-1]
        self._columns_CR.append(columns_CR)

    def room(self) -> tuple[Tensor, Tensor]:
        """Where the next update writes log ratios and value errors."""
        return self._rooms.pop()

    def kl_of_epoch(self) -> float:
        """How far the policy had moved, on average over the last epoch."""
        return float(approximate_kl(self._log_ratio_ER[len(self._columns_CR) - 1]))

    def metrics(self, taken: Taken) -> dict[str, float]:
        """Means over all epochs made; entropy and explained variance from before the first."""
        num_epochs = len(self._columns_CR)
        log_ratio_ER = self._log_ratio_ER[:num_epochs]
        columns = Columns(*torch.stack(self._columns_CR, 1).unbind(0))
        ratio_ER = log_ratio_ER.exp()
        bounded_ER = torch.clamp(ratio_ER, columns.lower_B, columns.upper_B)
        values = {
            "loss/policy": (columns.pull_B * bounded_ER).mean(),
            "loss/value": self._error_ER[:num_epochs].square().mean(),
            "approx_kl": approximate_kl(log_ratio_ER),
            "clip_fraction": ((ratio_ER - 1.0).abs() > taken.clip).float().mean(),
            "entropy": taken.entropy_R.mean(),
            "explained_variance": _explained_variance(taken.value_R, taken.target_R),
            "behaviour_weight": taken.weight_R.mean(),
        }
        norms = {"grad_norm": sum(self.norms) / len(self.norms)}
        return {name: float(value) for name, value in values.items()} | norms


def _explained_variance(value_R: Tensor, target_R: Tensor) -> Tensor:
    """1 for perfect values, 0 for values no better than a constant."""
    return 1.0 - (target_R - value_R).var(correction=0) / target_R.var(correction=0).clamp(1e-12)
