"""Distributions over actions, for the learner: log-probability, entropy, mode, and gradients.

    log_prob_B = head.log_prob(outputs_AB, action_KB)
    outputs_gradient_AB = head.backward(log_prob_gradient_B, entropy_gradient_B)

A: outputs, K: choices or numbers of one action, M: options of a choice, B: rows. Rows come last
(see gradient.py).
"""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor, nn

from tianji.models.actions import Choices, Continuous

IMPOSSIBLE = -1e9
"""Logit of an option that is not there: probability 0, and still finite in an entropy."""


class ActionHead(Protocol):
    """What a learner needs of a distribution; log_prob remembers what the other two use."""

    def log_prob(self, outputs_AB: Tensor, action_KB: Tensor) -> Tensor: ...

    def entropy(self) -> Tensor:
        """Of the distributions of the last log_prob(): [B]."""
        ...

    def backward(self, log_prob_gradient_B: Tensor, entropy_gradient_B: Tensor | None) -> Tensor:
        """Gradient of the outputs [A, B]; sets that of the head's own parameters."""
        ...

    def mode(self, outputs_BA: Tensor) -> Tensor:
        """The most likely action, [B, *shape], differently from the rest with rows first."""
        ...


class CategoricalHead(nn.Module):
    """K independent choices (Discrete, MultiDiscrete, MultiBinary).

        log pi(a) = sum_k log softmax(z_k)[a_k]         d log pi / dz_k = onehot(a_k) - p_k
        H = -sum_k sum_m p log p                        d H / dz_k = -p_k (log p_k + H_k)

    Choices of different sizes are filled up to the largest with impossible options.
    """

    def __init__(self, layout: Choices) -> None:
        super().__init__()
        self._sizes = list(layout.sizes)
        self._shape = layout.shape
        self._num_options = max(layout.sizes)
        exists_KM = torch.arange(self._num_options)[None] < torch.tensor(self._sizes)[:, None]
        # Plain attribute: it follows from the space and is no part of the published policy.
        self._exists_KM = None if bool(exists_KM.all()) else exists_KM
        self._log_p_KMB = torch.empty(0)
        self._action_K1B = torch.empty(0, dtype=torch.int64)

    def log_prob(self, outputs_AB: Tensor, action_KB: Tensor) -> Tensor:
        if self._exists_KM is None:
            logits_KMB = outputs_AB.reshape(len(self._sizes), self._num_options, -1)
        else:
            shape = (*self._exists_KM.shape, outputs_AB.shape[1])
            logits_KMB = outputs_AB.new_full(shape, IMPOSSIBLE)
            logits_KMB[self._exists_KM] = outputs_AB
        self._log_p_KMB = torch.log_softmax(logits_KMB, 1)
        self._action_K1B = action_KB[:, None]
        log_prob_K1B = self._log_p_KMB.gather(1, self._action_K1B)
        return log_prob_K1B.view(-1) if len(self._sizes) == 1 else log_prob_K1B.sum((0, 1))

    def entropy(self) -> Tensor:
        return -(self._log_p_KMB.exp() * self._log_p_KMB).sum((0, 1))

    def backward(self, log_prob_gradient_B: Tensor, entropy_gradient_B: Tensor | None) -> Tensor:
        p_KMB = self._log_p_KMB.exp()
        gradient_KMB = p_KMB * -log_prob_gradient_B
        hot_K1B = log_prob_gradient_B.expand(self._action_K1B.shape)
        gradient_KMB.scatter_add_(1, self._action_K1B, hot_K1B)
        if entropy_gradient_B is not None:
            p_log_p_KMB = p_KMB * self._log_p_KMB
            slope_KMB = torch.addcmul(-p_log_p_KMB, p_KMB, p_log_p_KMB.sum(1, keepdim=True))
            gradient_KMB.addcmul_(slope_KMB, entropy_gradient_B)
        if self._exists_KM is None:
            return gradient_KMB.view(-1, gradient_KMB.shape[2])
        return gradient_KMB[self._exists_KM]

    def mode(self, outputs_BA: Tensor) -> Tensor:
        logits = torch.split(outputs_BA, self._sizes, 1)
        choices_BK = torch.stack([logits_BM.argmax(1) for logits_BM in logits], 1)
        return choices_BK.reshape(-1, *self._shape)


class GaussianHead(nn.Module):
    """A Gaussian whose mean is the output and whose deviation does not depend on the state (Box).

    log pi(a) = sum_k -z^2/2 - log s - log(2 pi)/2,   z = (a - mean) / s
    d log pi / d mean = z / s,   d log pi / d log s = z^2 - 1,   d H / d log s = 1
    """

    def __init__(self, layout: Continuous) -> None:
        super().__init__()
        self._shape = layout.shape
        self.log_std_A = nn.Parameter(torch.zeros(layout.num_outputs))
        self._low_A = torch.from_numpy(layout.low.copy())
        self._high_A = torch.from_numpy(layout.high.copy())
        self._z_AB = torch.empty(0)
        self._inverse_A1 = torch.empty(0)

    def log_prob(self, outputs_AB: Tensor, action_KB: Tensor) -> Tensor:
        log_std_A = self.log_std_A.detach()
        self._inverse_A1 = torch.exp(-log_std_A)[:, None]
        self._z_AB = (action_KB - outputs_AB) * self._inverse_A1
        constant = log_std_A.sum() + 0.5 * math.log(2.0 * math.pi) * len(log_std_A)
        return self._z_AB.square().sum(0).mul_(-0.5).sub_(constant)

    def entropy(self) -> Tensor:
        log_std_A = self.log_std_A.detach()
        total = log_std_A.sum() + 0.5 * math.log(2.0 * math.pi * math.e) * len(log_std_A)
        return total.expand(self._z_AB.shape[1])

    def backward(self, log_prob_gradient_B: Tensor, entropy_gradient_B: Tensor | None) -> Tensor:
        z_gradient_AB = self._z_AB * log_prob_gradient_B
        slope_A = (z_gradient_AB * self._z_AB).sum(1) - log_prob_gradient_B.sum()
        if entropy_gradient_B is not None:
            slope_A += entropy_gradient_B.sum()
        assert self.log_std_A.grad is not None, "flatten() the module first"
        self.log_std_A.grad.copy_(slope_A)
        return z_gradient_AB * self._inverse_A1

    def mode(self, outputs_BA: Tensor) -> Tensor:
        return torch.clamp(outputs_BA, self._low_A, self._high_A).reshape(-1, *self._shape)


def build_head(layout: Choices | Continuous) -> CategoricalHead | GaussianHead:
    return CategoricalHead(layout) if isinstance(layout, Choices) else GaussianHead(layout)
