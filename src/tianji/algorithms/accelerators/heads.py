"""Gradients of the action distributions (models/heads.py) in closed form.

    prepared_AB = form.prepare(action_BK)                          # once for a batch
    log_prob_B, saved = form.log_prob(outputs_AB, prepared_AB)
    outputs_gradient_AB = form.backward(saved, log_prob_gradient_B, entropy_gradient_B)

backward() also sets the gradient of the head's own parameters.

A: outputs, K: choices or numbers of one action, M: options of a choice, B: rows. Rows come last
(see network.py).
"""

from __future__ import annotations

import math
from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from tianji.models.heads import (
    SMALLEST_SPREAD,
    CategoricalHead,
    GaussianHead,
    Head,
    SquashedHead,
)
from tianji.models.masks import IMPOSSIBLE

Saved: TypeAlias = tuple[Tensor, ...]
"""What log_prob() computed and the other two use again."""


class ClosedCategorical:
    """Derivatives of K choices.

        d log pi / dz_k = onehot(a_k) - p_k          d H / dz_k = -p_k (log p_k + H_k)

    Actions are prepared as one-hot columns: two plain products instead of a gather and a scatter.
    Choices of different sizes are filled up to the largest with impossible options.
    """

    def __init__(self, head: CategoricalHead) -> None:
        self._num_choices, self._num_options = len(head.sizes), max(head.sizes)
        exists_KM = torch.arange(self._num_options)[None] < torch.tensor(head.sizes)[:, None]
        self._exists_A = None if bool(exists_KM.all()) else exists_KM.view(-1)

    def prepare(self, action_BK: Tensor) -> Tensor:
        hot_BKM = F.one_hot(action_BK, self._num_options)
        return hot_BKM.flatten(1).t().to(torch.float32, memory_format=torch.contiguous_format)

    def log_prob(self, outputs_AB: Tensor, prepared_AB: Tensor) -> tuple[Tensor, Saved]:
        # A single choice needs no axis of its own, which saves three calls per update.
        is_single = self._num_choices == 1
        filled_KMB = outputs_AB if is_single else self._by_choice(self._filled(outputs_AB))
        hot_KMB = prepared_AB if is_single else self._by_choice(prepared_AB)
        log_p_KMB = torch.log_softmax(filled_KMB, -2)
        return _sum_options(log_p_KMB * hot_KMB), (log_p_KMB, hot_KMB)

    def entropy(self, saved: Saved) -> Tensor:
        log_p_KMB, _ = saved
        return -_sum_options(log_p_KMB.exp() * log_p_KMB)

    def backward(
        self, saved: Saved, log_prob_gradient_B: Tensor, entropy_gradient_B: Tensor | None
    ) -> Tensor:
        log_p_KMB, hot_KMB = saved
        p_KMB = log_p_KMB.exp()
        gradient_KMB = (hot_KMB - p_KMB).mul_(log_prob_gradient_B)
        if entropy_gradient_B is not None:
            p_log_p_KMB = p_KMB * log_p_KMB
            slope_KMB = torch.addcmul(-p_log_p_KMB, p_KMB, p_log_p_KMB.sum(-2, keepdim=True))
            gradient_KMB.addcmul_(slope_KMB, entropy_gradient_B)
        if self._num_choices == 1:
            return gradient_KMB
        gradient_AB = gradient_KMB.flatten(0, 1)
        return gradient_AB if self._exists_A is None else gradient_AB[self._exists_A]

    def _filled(self, outputs_AB: Tensor) -> Tensor:
        if self._exists_A is None:
            return outputs_AB
        filled_AB = outputs_AB.new_full((len(self._exists_A), outputs_AB.shape[1]), IMPOSSIBLE)
        filled_AB[self._exists_A] = outputs_AB
        return filled_AB

    def _by_choice(self, x_AB: Tensor) -> Tensor:
        return x_AB.view(self._num_choices, self._num_options, -1)


def _sum_options(x_KMB: Tensor) -> Tensor:
    """Sum over all options of all choices."""
    return x_KMB.sum(0) if x_KMB.ndim == 2 else x_KMB.sum((0, 1))


class ClosedGaussian:
    """d log pi / d mean = z / s,   d log pi / d log s = z^2 - 1,   d H / d log s = 1."""

    def __init__(self, head: GaussianHead) -> None:
        assert head.log_std_A.grad is not None, "flatten() the module first"
        self._log_std_A, self._gradient_A = head.log_std_A.detach(), head.log_std_A.grad

    def prepare(self, action_BK: Tensor) -> Tensor:
        return action_BK.t().contiguous()

    def log_prob(self, outputs_AB: Tensor, prepared_AB: Tensor) -> tuple[Tensor, Saved]:
        inverse_A1 = torch.exp(-self._log_std_A)[:, None]
        z_AB = (prepared_AB - outputs_AB) * inverse_A1
        constant = self._log_std_A.sum() + 0.5 * math.log(2.0 * math.pi) * len(self._log_std_A)
        return z_AB.square().sum(0).mul_(-0.5).sub_(constant), (z_AB, inverse_A1)

    def entropy(self, saved: Saved) -> Tensor:
        log_std_A = self._log_std_A
        total = log_std_A.sum() + 0.5 * math.log(2.0 * math.pi * math.e) * len(log_std_A)
        return total.expand(saved[0].shape[1])

    def backward(
        self, saved: Saved, log_prob_gradient_B: Tensor, entropy_gradient_B: Tensor | None
    ) -> Tensor:
        z_AB, inverse_A1 = saved
        z_gradient_AB = z_AB * log_prob_gradient_B
        slope_A = (z_gradient_AB * z_AB).sum(1) - log_prob_gradient_B.sum()
        if entropy_gradient_B is not None:
            slope_A += entropy_gradient_B.sum()
        self._gradient_A.copy_(slope_A)
        return z_gradient_AB * inverse_A1


class ClosedSquashed:
    """d log pi / d mean = z / s,  d log pi / d s = (z^2 - 1) / s,  d s / d spread = 1 - exp(-s)."""

    def __init__(self, head: SquashedHead) -> None:
        self._num_numbers = head.num_numbers

    def prepare(self, action_BK: Tensor) -> Tensor:
        return action_BK.t().contiguous()

    def log_prob(self, outputs_AB: Tensor, prepared_AB: Tensor) -> tuple[Tensor, Saved]:
        mean_KB, spread_KB = torch.split(outputs_AB, self._num_numbers)
        deviation_KB = F.softplus(spread_KB.clamp(SMALLEST_SPREAD))
        z_KB = (prepared_AB - mean_KB) / deviation_KB
        constant = 0.5 * math.log(2.0 * math.pi) * self._num_numbers
        log_prob_B = (z_KB.square().mul_(-0.5) - deviation_KB.log()).sum(0).sub_(constant)
        return log_prob_B, (z_KB, deviation_KB, spread_KB)

    def entropy(self, saved: Saved) -> Tensor:
        constant = 0.5 * math.log(2.0 * math.pi * math.e) * self._num_numbers
        return saved[1].log().sum(0).add_(constant)

    def backward(
        self, saved: Saved, log_prob_gradient_B: Tensor, entropy_gradient_B: Tensor | None
    ) -> Tensor:
        z_KB, deviation_KB, spread_KB = saved
        inverse_KB = deviation_KB.reciprocal()
        slope_KB = -torch.expm1(-deviation_KB) * inverse_KB * (spread_KB >= SMALLEST_SPREAD)
        spread_gradient_KB = (z_KB.square() - 1.0).mul_(log_prob_gradient_B)
        if entropy_gradient_B is not None:
            spread_gradient_KB += entropy_gradient_B
        mean_gradient_KB = z_KB * inverse_KB * log_prob_gradient_B
        return torch.cat([mean_gradient_KB, spread_gradient_KB.mul_(slope_KB)])


ClosedHead: TypeAlias = ClosedCategorical | ClosedGaussian | ClosedSquashed


def close_head(head: Head) -> ClosedHead:
    """Return the closed form of a head."""
    if isinstance(head, CategoricalHead):
        return ClosedCategorical(head)
    return ClosedSquashed(head) if isinstance(head, SquashedHead) else ClosedGaussian(head)
