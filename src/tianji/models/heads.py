"""Distributions over actions, for the learner: log-probability, entropy, mode, and gradients.

    prepared_AB = head.prepare(action_BK)                 # once for a batch
    log_prob_B = head.log_prob(outputs_AB, prepared_AB)
    outputs_gradient_AB = head.backward(log_prob_gradient_B, entropy_gradient_B)

A: outputs, K: choices or numbers of one action, M: options of a choice, B: rows. Rows come last
(see gradient.py).
"""

from __future__ import annotations

import math
from typing import Protocol, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tianji.models.actions import Choices, Continuous, Squashed

IMPOSSIBLE = -1e9
"""Logit of an option that is not there: probability 0, and still finite in an entropy."""
INITIAL_STD = 0.25
"""Standard deviation of continuous actions at the start, as a share of their range: most of the
first actions are then within their bounds (Andrychowicz et al. 2021 recommend 0.5 for actions in
[-1, 1]). HalfCheetah-v5 learns three times as much in 500,000 steps as with the full half range."""
SMALLEST_SPREAD = -9.0
"""Spreads count from here on: a deviation below softplus(-9) = 1e-4 would drown in the rounding of
actions."""


class _Memory:
    """What log_prob() leaves for entropy() and backward(). Not attributes of the module: setting
    those costs more than a small operation does."""

    saved: tuple[Tensor, ...]


class ActionHead(Protocol):
    """What a learner needs of a distribution; log_prob remembers what the other two use."""

    def prepare(self, action_BK: Tensor) -> Tensor:
        """Actions in the form that log_prob wants, made once for a batch; rows last."""
        ...

    def log_prob(self, outputs_AB: Tensor, prepared_AB: Tensor) -> Tensor: ...

    def entropy(self) -> Tensor:
        """Of the distributions of the last log_prob(): [B]."""
        ...

    def backward(self, log_prob_gradient_B: Tensor, entropy_gradient_B: Tensor | None) -> Tensor:
        """Gradient of the outputs [A, B]; sets that of the head's own parameters."""
        ...

    def mode(self, outputs_BA: Tensor) -> Tensor:
        """The most likely action, [B, *shape]; rows come first, unlike in the rest."""
        ...


class CategoricalHead(nn.Module):
    """K independent choices (Discrete, MultiDiscrete, MultiBinary).

        log pi(a) = sum_k log softmax(z_k)[a_k]         d log pi / dz_k = onehot(a_k) - p_k
        H = -sum_k sum_m p log p                        d H / dz_k = -p_k (log p_k + H_k)

    Actions are prepared as one-hot columns: two plain products instead of a gather and a scatter.
    Choices of different sizes are filled up to the largest with impossible options.
    """

    def __init__(self, layout: Choices) -> None:
        super().__init__()
        self._sizes = list(layout.sizes)
        self._shape = layout.shape
        self._num_options = max(layout.sizes)
        exists_KM = torch.arange(self._num_options)[None] < torch.tensor(self._sizes)[:, None]
        # Plain attribute: it follows from the space and is no part of the published policy.
        self._exists_A = None if bool(exists_KM.all()) else exists_KM.view(-1)
        self._memory = _Memory()

    def prepare(self, action_BK: Tensor) -> Tensor:
        hot_BKM = F.one_hot(action_BK, self._num_options)
        return hot_BKM.flatten(1).t().to(torch.float32, memory_format=torch.contiguous_format)

    def log_prob(self, outputs_AB: Tensor, prepared_AB: Tensor) -> Tensor:
        # A single choice needs no axis of its own, which spares three calls per update.
        is_single = len(self._sizes) == 1
        filled_KMB = outputs_AB if is_single else self._by_choice(self._filled(outputs_AB))
        hot_KMB = prepared_AB if is_single else self._by_choice(prepared_AB)
        log_p_KMB = torch.log_softmax(filled_KMB, -2)
        self._memory.saved = (log_p_KMB, hot_KMB)
        return self._sum(log_p_KMB * hot_KMB)

    def entropy(self) -> Tensor:
        log_p_KMB, _ = self._memory.saved
        return -self._sum(log_p_KMB.exp() * log_p_KMB)

    def backward(self, log_prob_gradient_B: Tensor, entropy_gradient_B: Tensor | None) -> Tensor:
        log_p_KMB, hot_KMB = self._memory.saved
        p_KMB = log_p_KMB.exp()
        gradient_KMB = (hot_KMB - p_KMB).mul_(log_prob_gradient_B)
        if entropy_gradient_B is not None:
            p_log_p_KMB = p_KMB * log_p_KMB
            slope_KMB = torch.addcmul(-p_log_p_KMB, p_KMB, p_log_p_KMB.sum(-2, keepdim=True))
            gradient_KMB.addcmul_(slope_KMB, entropy_gradient_B)
        if len(self._sizes) == 1:
            return gradient_KMB
        gradient_AB = gradient_KMB.flatten(0, 1)
        return gradient_AB if self._exists_A is None else gradient_AB[self._exists_A]

    def mode(self, outputs_BA: Tensor) -> Tensor:
        logits = torch.split(outputs_BA, self._sizes, 1)
        choices_BK = torch.stack([logits_BM.argmax(1) for logits_BM in logits], 1)
        return choices_BK.reshape(-1, *self._shape)

    def _filled(self, outputs_AB: Tensor) -> Tensor:
        if self._exists_A is None:
            return outputs_AB
        filled_AB = outputs_AB.new_full((len(self._exists_A), outputs_AB.shape[1]), IMPOSSIBLE)
        filled_AB[self._exists_A] = outputs_AB
        return filled_AB

    def _by_choice(self, x_AB: Tensor) -> Tensor:
        return x_AB.view(len(self._sizes), self._num_options, -1)

    def _sum(self, x_KMB: Tensor) -> Tensor:
        """Over all options of all choices."""
        return x_KMB.sum(0) if x_KMB.ndim == 2 else x_KMB.sum((0, 1))


class GaussianHead(nn.Module):
    """A Gaussian whose mean is the output and whose deviation does not depend on the state (Box).

    log pi(a) = sum_k -z^2/2 - log s - log(2 pi)/2,   z = (a - mean) / s
    d log pi / d mean = z / s,   d log pi / d log s = z^2 - 1,   d H / d log s = 1
    """

    def __init__(self, layout: Continuous) -> None:
        super().__init__()
        self._shape = layout.shape
        self.log_std_A = nn.Parameter(_initial_log_std(layout))
        self._low_A = torch.from_numpy(layout.low.copy())
        self._high_A = torch.from_numpy(layout.high.copy())
        self._memory = _Memory()

    def prepare(self, action_BK: Tensor) -> Tensor:
        return action_BK.t().contiguous()

    def log_prob(self, outputs_AB: Tensor, prepared_AB: Tensor) -> Tensor:
        log_std_A = self.log_std_A.detach()
        inverse_A1 = torch.exp(-log_std_A)[:, None]
        z_AB = (prepared_AB - outputs_AB) * inverse_A1
        self._memory.saved = (z_AB, inverse_A1)
        constant = log_std_A.sum() + 0.5 * math.log(2.0 * math.pi) * len(log_std_A)
        return z_AB.square().sum(0).mul_(-0.5).sub_(constant)

    def entropy(self) -> Tensor:
        log_std_A = self.log_std_A.detach()
        total = log_std_A.sum() + 0.5 * math.log(2.0 * math.pi * math.e) * len(log_std_A)
        z_AB, _ = self._memory.saved
        return total.expand(z_AB.shape[1])

    def backward(self, log_prob_gradient_B: Tensor, entropy_gradient_B: Tensor | None) -> Tensor:
        z_AB, inverse_A1 = self._memory.saved
        z_gradient_AB = z_AB * log_prob_gradient_B
        slope_A = (z_gradient_AB * z_AB).sum(1) - log_prob_gradient_B.sum()
        if entropy_gradient_B is not None:
            slope_A += entropy_gradient_B.sum()
        assert self.log_std_A.grad is not None, "flatten() the module first"
        self.log_std_A.grad.copy_(slope_A)
        return z_gradient_AB * inverse_A1

    def mode(self, outputs_BA: Tensor) -> Tensor:
        return torch.clamp(outputs_BA, self._low_A, self._high_A).reshape(-1, *self._shape)


def _initial_log_std(layout: Continuous) -> Tensor:
    """A quarter of the range of each action; 1 where an action has no bounds."""
    range_A = torch.from_numpy(layout.high - layout.low)
    has_range_A = range_A.isfinite() & (range_A > 0.0)
    return torch.where(has_range_A, INITIAL_STD * range_A, 1.0).log()


class SquashedHead(nn.Module):
    """A Gaussian before squashing, whose mean and deviation are both outputs (bounded Box).

        u ~ N(mean, s^2),  s = softplus(spread),  the world gets middle + half * tanh(u)
        log pi(u) = sum_k -z^2/2 - log s - log(2 pi)/2,   z = (u - mean) / s
        d log pi / d mean = z / s,   d log pi / d s = (z^2 - 1) / s,   d s / d spread = 1 - exp(-s)

    Actions are u: what squashing does to their density does not depend on the parameters, and so
    changes no gradient. Entropy is that of u, too.
    """

    def __init__(self, layout: Squashed) -> None:
        super().__init__()
        self._shape = layout.shape
        self._num_numbers = layout.num_numbers
        self._middle_K = torch.from_numpy(layout.middle)
        self._half_K = torch.from_numpy(layout.half)
        self._memory = _Memory()

    def prepare(self, action_BK: Tensor) -> Tensor:
        return action_BK.t().contiguous()

    def log_prob(self, outputs_AB: Tensor, prepared_AB: Tensor) -> Tensor:
        mean_KB, spread_KB = torch.split(outputs_AB, self._num_numbers)
        deviation_KB = F.softplus(spread_KB.clamp(SMALLEST_SPREAD))
        z_KB = (prepared_AB - mean_KB) / deviation_KB
        self._memory.saved = (z_KB, deviation_KB, spread_KB)
        constant = 0.5 * math.log(2.0 * math.pi) * self._num_numbers
        return (z_KB.square().mul_(-0.5) - deviation_KB.log()).sum(0).sub_(constant)

    def entropy(self) -> Tensor:
        _, deviation_KB, _ = self._memory.saved
        constant = 0.5 * math.log(2.0 * math.pi * math.e) * self._num_numbers
        return deviation_KB.log().sum(0).add_(constant)

    def backward(self, log_prob_gradient_B: Tensor, entropy_gradient_B: Tensor | None) -> Tensor:
        z_KB, deviation_KB, spread_KB = self._memory.saved
        inverse_KB = deviation_KB.reciprocal()
        slope_KB = -torch.expm1(-deviation_KB) * inverse_KB * (spread_KB >= SMALLEST_SPREAD)
        spread_gradient_KB = (z_KB.square() - 1.0).mul_(log_prob_gradient_B)
        if entropy_gradient_B is not None:
            spread_gradient_KB += entropy_gradient_B
        mean_gradient_KB = z_KB * inverse_KB * log_prob_gradient_B
        return torch.cat([mean_gradient_KB, spread_gradient_KB.mul_(slope_KB)])

    def mode(self, outputs_BA: Tensor) -> Tensor:
        """Squashing the mean: the most likely u, and the median of what the world gets."""
        mean_BK = outputs_BA[:, : self._num_numbers]
        action_BK = self._middle_K + self._half_K * torch.tanh(mean_BK)
        return action_BK.reshape(-1, *self._shape)


Head: TypeAlias = CategoricalHead | GaussianHead | SquashedHead


def build_head(layout: Choices | Continuous) -> Head:
    if isinstance(layout, Choices):
        return CategoricalHead(layout)
    return SquashedHead(layout) if isinstance(layout, Squashed) else GaussianHead(layout)
