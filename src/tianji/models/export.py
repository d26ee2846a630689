"""The greedy policy as one module, for ONNX.

B: rows, A: outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium as gym
import torch
from gymnasium import spaces
from torch import Tensor, nn


class GreedyPolicy(nn.Module):
    """Observation tensors, one per leaf in the space's order, to the environment's own actions.

    Unlike the choices that unrolls hold, these count from the action space's `start`.
    """

    def __init__(
        self,
        model: nn.Module,
        outputs: Callable[[Mapping[str, Tensor]], Tensor],
        mode: Callable[[Tensor], Tensor],
        keys: Sequence[str],
        action_space: gym.Space[Any],
    ) -> None:
        super().__init__()
        self.model = model
        self._outputs = outputs
        self._mode = mode
        self._keys = list(keys)
        self._start: Tensor | None = None
        if isinstance(action_space, spaces.Discrete | spaces.MultiDiscrete):
            self._start = torch.as_tensor(action_space.start, dtype=torch.int64)

    def forward(self, *leaves: Tensor) -> Tensor:
        obs = dict(zip(self._keys, leaves, strict=True))
        action = self._mode(self._outputs(obs))
        return action if self._start is None else action + self._start
