"""Distributions over actions in plain torch: log-probability, entropy and mode of a batch,
and the greedy policy as one module, for ONNX.

A: outputs, K: choices or numbers of one action, M: options of a choice, B: rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import torch
import torch.nn.functional as F
from gymnasium.spaces import Discrete, MultiDiscrete
from torch import Tensor, nn

from tianji.envs.interface import Spaces
from tianji.envs.spaces import observation_leaves
from tianji.models.actions import Choices, Continuous, Squashed

INITIAL_STD = 0.25
"""Standard deviation of continuous actions at the start, as a share of their range: most of the
first actions are then within their bounds (Andrychowicz et al. 2021 recommend 0.5 for actions in
[-1, 1]). HalfCheetah-v5 learns three times as much in 500,000 steps as with the full half range."""
SMALLEST_SPREAD = -9.0
"""Smaller spreads count as this one: a deviation below softplus(-9) = 1e-4 would be lost in the
rounding of actions."""


class CategoricalHead(nn.Module):
    """K independent choices (Discrete, MultiDiscrete, MultiBinary), with logits z_k.

    log pi(a) = sum_k log softmax(z_k)[a_k],   H = -sum_k sum_m p_km log p_km
    """

    def __init__(self, layout: Choices) -> None:
        super().__init__()
        self.layout = layout
        self.sizes = list(layout.sizes)

    def log_prob(self, outputs_BA: Tensor, action_BK: Tensor) -> Tensor:
        parts = zip(self._logits(outputs_BA), torch.split(action_BK, 1, 1), strict=True)
        chosen = [torch.log_softmax(z_BM, 1).gather(1, action_B1) for z_BM, action_B1 in parts]
        return torch.cat(chosen, 1).sum(1)

    def entropy(self, outputs_BA: Tensor) -> Tensor:
        log_p_BA = torch.cat([torch.log_softmax(z, 1) for z in self._logits(outputs_BA)], 1)
        return -(log_p_BA.exp() * log_p_BA).sum(1)

    def mode(self, outputs_BA: Tensor) -> Tensor:
        """Return the most likely actions, [B, *shape]."""
        choices_BK = torch.stack([z_BM.argmax(1) for z_BM in self._logits(outputs_BA)], 1)
        return choices_BK.reshape(-1, *self.layout.shape)

    def _logits(self, outputs_BA: Tensor) -> tuple[Tensor, ...]:
        return torch.split(outputs_BA, self.sizes, 1)


class GaussianHead(nn.Module):
    """A Gaussian whose mean is the output and whose deviation does not depend on the state (Box).

    log pi(a) = sum_k -z^2/2 - log s - log(2 pi)/2,   z = (a - mean) / s
    """

    def __init__(self, layout: Continuous) -> None:
        super().__init__()
        self.layout = layout
        self.log_std_A = nn.Parameter(_initial_log_std(layout))
        self._low_A, self._high_A = torch.tensor(layout.low), torch.tensor(layout.high)

    def log_prob(self, outputs_BA: Tensor, action_BK: Tensor) -> Tensor:
        return _gaussian_log_prob(action_BK, outputs_BA, self.log_std_A)

    def entropy(self, outputs_BA: Tensor) -> Tensor:
        return _gaussian_entropy(self.log_std_A.expand_as(outputs_BA))

    def mode(self, outputs_BA: Tensor) -> Tensor:
        bounds = (bound_A.to(outputs_BA.device) for bound_A in (self._low_A, self._high_A))
        return torch.clamp(outputs_BA, *bounds).reshape(-1, *self.layout.shape)


class SquashedHead(nn.Module):
    """A Gaussian before squashing, whose mean and deviation are both outputs (bounded Box).

        u ~ N(mean, s^2),  s = softplus(spread),  the environment gets middle + half * tanh(u)

    Actions are u: what squashing does to their density does not depend on the parameters, and so
    changes no gradient. The entropy is that of u, too.
    """

    def __init__(self, layout: Squashed) -> None:
        super().__init__()
        self.layout = layout
        self.num_numbers = layout.num_numbers
        self._middle_K, self._half_K = torch.tensor(layout.middle), torch.tensor(layout.half)

    def log_prob(self, outputs_BA: Tensor, action_BK: Tensor) -> Tensor:
        return _gaussian_log_prob(action_BK, *self._mean_and_log_std(outputs_BA))

    def draw(self, outputs_BA: Tensor, noise_BK: Tensor) -> tuple[Tensor, Tensor]:
        """Return the actions in [-1, 1] that normal noise makes, and their log-probabilities, both
        differentiable (Haarnoja et al. 2018b, appendix C):

        a = tanh(u),  u = mean + s * noise,  log pi(a) = log N(u) - sum_k log(1 - a^2)
        log(1 - tanh(u)^2) = 2 (log 2 - u - softplus(-2 u)), which is finite for every u
        """
        mean_BK, log_std_BK = self._mean_and_log_std(outputs_BA)
        u_BK = mean_BK + log_std_BK.exp() * noise_BK
        log_slope_BK = 2.0 * (math.log(2.0) - u_BK - F.softplus(-2.0 * u_BK))
        log_prob_B = _gaussian_log_prob(u_BK, mean_BK, log_std_BK) - log_slope_BK.sum(1)
        return torch.tanh(u_BK), log_prob_B

    def entropy(self, outputs_BA: Tensor) -> Tensor:
        return _gaussian_entropy(self._mean_and_log_std(outputs_BA)[1])

    def mode(self, outputs_BA: Tensor) -> Tensor:
        """Squash the mean: the most likely u, and the median of what the environment gets."""
        squashed_BK = torch.tanh(outputs_BA[:, : self.num_numbers])
        middle_K, half_K = (x_K.to(outputs_BA.device) for x_K in (self._middle_K, self._half_K))
        return (middle_K + half_K * squashed_BK).reshape(-1, *self.layout.shape)

    def _mean_and_log_std(self, outputs_BA: Tensor) -> tuple[Tensor, Tensor]:
        mean_BK, spread_BK = torch.split(outputs_BA, self.num_numbers, 1)
        return mean_BK, F.softplus(spread_BK.clamp(SMALLEST_SPREAD)).log()


def _gaussian_log_prob(x_BK: Tensor, mean_BK: Tensor, log_std: Tensor) -> Tensor:
    z_BK = (x_BK - mean_BK) / log_std.exp()
    return -(0.5 * z_BK.square() + log_std + 0.5 * math.log(2.0 * math.pi)).sum(1)


def _gaussian_entropy(log_std_BK: Tensor) -> Tensor:
    return (log_std_BK + 0.5 * math.log(2.0 * math.pi * math.e)).sum(1)


def _initial_log_std(layout: Continuous) -> Tensor:
    """Return the log of a quarter of each action's range; 0 where an action has no bounds."""
    range_A = torch.from_numpy(layout.high - layout.low)
    has_range_A = range_A.isfinite() & (range_A > 0.0)
    return torch.where(has_range_A, INITIAL_STD * range_A, 1.0).log()


Head: TypeAlias = CategoricalHead | GaussianHead | SquashedHead


def build_head(layout: Choices | Continuous) -> Head:
    if isinstance(layout, Choices):
        return CategoricalHead(layout)
    return SquashedHead(layout) if isinstance(layout, Squashed) else GaussianHead(layout)


class GreedyPolicy(nn.Module):
    """Observation tensors, one per leaf in the space's order, to the environment's own actions.

    Unlike the choices that unrolls hold, these count from the action space's `start`. With a
    memory, its state is one more input and one more output.
    """

    def __init__(
        self,
        model: nn.Module,
        outputs: Callable[..., Tensor | tuple[Tensor, ...]],
        mode: Callable[[Tensor], Tensor],
        spaces: Spaces,
    ) -> None:
        """outputs: (obs) -> outputs, or with a memory (obs, state) -> (outputs, state)."""
        super().__init__()
        self.model = model
        self._outputs = outputs
        self._mode = mode
        self._keys = [leaf.key for leaf in observation_leaves(spaces.observation)]
        self._start: Tensor | None = None
        if isinstance(spaces.action, Discrete | MultiDiscrete):
            self._start = torch.as_tensor(spaces.action.start, dtype=torch.int64)

    def forward(self, *inputs: Tensor) -> Tensor | tuple[Tensor, ...]:
        num_leaves = len(self._keys)
        obs = dict(zip(self._keys, inputs[:num_leaves], strict=True))
        found = self._outputs(obs, *inputs[num_leaves:])
        outputs, *state = found if isinstance(found, tuple) else (found,)
        action = self._mode(outputs)
        action = action if self._start is None else action + self._start
        return (action, *state) if state else action
