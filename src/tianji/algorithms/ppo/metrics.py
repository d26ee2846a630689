"""The metrics of one batch, computed once from what its updates leave behind.

R: rows of the batch, B: rows of a minibatch, M: rows of all minibatches so far.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tianji.algorithms.ppo.batch import Columns, EvaluatedBatch
from tianji.algorithms.ppo.loss import Diagnostics, LossTerms, clipped_surrogate
from tianji.ops.kl import approximate_kl


class BatchLog:
    """Collects the diagnostics of every update; grows with the updates that are made."""

    def __init__(
        self, batch: EvaluatedBatch[Columns], terms: LossTerms, at_start: dict[str, float]
    ) -> None:
        """at_start: metrics that are known before the first update."""
        self._batch = batch
        self._terms = terms
        self._at_start = at_start
        self._orders: list[Tensor] = []
        self._num_before_epoch = 0
        self._log_ratios: list[Tensor] = []
        self._value_errors: list[Tensor] = []
        self.norms: list[float] = []
        """Norms of the gradients, one per update."""

    def begin_epoch(self, order_R: Tensor) -> None:
        self._orders.append(order_R)
        self._num_before_epoch = len(self._log_ratios)

    def add(self, diagnostics: Diagnostics) -> None:
        self._log_ratios.append(diagnostics.log_ratio_B)
        self._value_errors.append(diagnostics.value_error)

    @property
    def last(self) -> Diagnostics:
        return Diagnostics(self._log_ratios[-1], self._value_errors[-1])

    def kl_of_epoch(self) -> float:
        """Return how far the policy has moved, on average over this epoch so far."""
        return float(approximate_kl(torch.cat(self._log_ratios[self._num_before_epoch :])))

    def metrics(self) -> dict[str, float]:
        """Return means over all updates; explained variance from before the first."""
        if not self.norms:
            return {}
        log_ratio_M = torch.cat(self._log_ratios)
        order_M = torch.cat(self._orders)[: len(log_ratio_M)]
        ratio_M = log_ratio_M.exp()
        weighted_advantage_M = self._batch.columns.weighted_advantage_B[order_M]
        clip = self._terms.clip
        values = {
            "loss/policy": -clipped_surrogate(ratio_M, weighted_advantage_M, clip).mean(),
            "loss/value": torch.cat(self._value_errors, -1).square().mean(),
            "approx_kl": approximate_kl(log_ratio_M),
            "clip_fraction": ((ratio_M - 1.0).abs() > clip).float().mean(),
            "explained_variance": self._explained_variance(),
        }
        norms = {"grad_norm": sum(self.norms) / len(self.norms)}
        return {name: float(value) for name, value in values.items()} | norms | self._at_start

    def _explained_variance(self) -> Tensor:
        """Return 1 for perfect values, 0 for values no better than a constant."""
        target_R, value_R = self._batch.columns.target_B, self._batch.columns.value_B
        unexplained = (target_R - value_R).var(correction=0)
        return 1.0 - unexplained / target_R.var(correction=0).clamp(1e-12)
