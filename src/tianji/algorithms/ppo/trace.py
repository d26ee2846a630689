"""What PPO's updates leave behind for the metrics, computed once per batch and not per update.

R: valid rows of the batch, E: epochs made, B: rows of a minibatch.
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
    minibatch_rows: float
    """On average."""
    value_slope: Tensor
    """What the error of a value is multiplied with for the gradient; a tensor, because a number
    would be turned into one by every update."""
    entropy_R: Tensor
    weight_R: Tensor


class Trace:
    """Room for two numbers of every row in every epoch, which updates write in place."""

    def __init__(self, taken: Taken, sizes: list[int], max_epochs: int) -> None:
        self._taken = taken
        self._log_ratio_ER = torch.empty(max_epochs, sum(sizes))
        self._error_ER = torch.empty(max_epochs, sum(sizes))
        log_ratios_B = torch.split(self._log_ratio_ER.view(-1), sizes * max_epochs)
        errors_1B = torch.split(self._error_ER.view(1, -1), sizes * max_epochs, 1)
        self.rooms = list(zip(log_ratios_B, errors_1B, strict=True))
        """Where each update writes its log ratios [B] and its value errors [1, B]."""
        self.norms: list[float] = []
        """Of the gradients, one per update."""
        self._epochs: list[Columns] = []

    def end_epoch(self, columns: Columns) -> None:
        """Note the order that the rows had."""
        self._epochs.append(columns)

    def kl_of_epoch(self) -> float:
        """How far the policy had moved, on average over the epoch that ended."""
        return float(approximate_kl(self._log_ratio_ER[len(self._epochs) - 1]))

    def metrics(self) -> dict[str, float]:
        """Means over all epochs made; entropy and explained variance from before the first."""
        num_epochs = len(self._epochs)
        log_ratio_ER = self._log_ratio_ER[:num_epochs]
        columns = Columns(*(torch.stack(column) for column in zip(*self._epochs, strict=True)))
        ratio_ER = log_ratio_ER.exp()
        bounded_ER = torch.clamp(ratio_ER, columns.lower_B, columns.upper_B)
        values = {
            "loss/policy": (columns.pull_B * bounded_ER).mean() * self._taken.minibatch_rows,
            "loss/value": self._error_ER[:num_epochs].square().mean(),
            "approx_kl": approximate_kl(log_ratio_ER),
            "clip_fraction": ((ratio_ER - 1.0).abs() > self._taken.clip).float().mean(),
            "entropy": self._taken.entropy_R.mean(),
            "explained_variance": _explained_variance(self._epochs[0]),
            "behaviour_weight": self._taken.weight_R.mean(),
        }
        norms = {"grad_norm": sum(self.norms) / len(self.norms)}
        return {name: float(value) for name, value in values.items()} | norms


def _explained_variance(columns: Columns) -> Tensor:
    """1 for perfect values, 0 for values no better than a constant."""
    unexplained = (columns.target_B - columns.value_B).var(correction=0)
    return 1.0 - unexplained / columns.target_B.var(correction=0).clamp(1e-12)
