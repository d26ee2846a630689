"""Small environments that no policy without a memory solves.

    tianji train --env tianji.envs.remembering:TMaze --model.memory gru
    tianji train cartpole-memory-ppo

Both offer their state, so that runs on them resume exactly.
"""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv
from gymnasium.spaces import Box, Discrete
from gymnasium.vector.utils import batch_space

from tianji.types import Array

FORWARD, LEFT, RIGHT = 0, 1, 2


class TMaze(gym.Env[Any, Any]):
    """A corridor with a fork at its end (Bakker 2002): a sign at its start says which way to turn.

    It observes (the sign, 1 at the fork). The sign is -1 for left and 1 for right in the first
    observation and 0 later. The right turn gives 1 and the wrong one -1; both end the episode. The
    shortest way takes `length` steps. A step that goes nowhere costs 1 / length, and an episode is
    cut after 4 times the length. The best return is 1; without a memory it is 0 on average.
    """

    remembers: ClassVar[tuple[str, ...]] = ("sign", "place", "steps")

    def __init__(self, length: int = 30) -> None:
        self.length = length
        self.observation_space = Box(-1.0, 1.0, (2,), np.float32)
        self.action_space = Discrete(3)
        self.sign, self.place, self.steps = 1, 0, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        self.sign = 1 if self.np_random.random() < 0.5 else -1
        self.place = self.steps = 0
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        is_at_fork, is_forward = self.place == self.length - 1, int(action) == FORWARD
        self.steps += 1
        is_cut = self.steps >= 4 * self.length
        if is_at_fork and not is_forward:
            is_right = int(action) == (RIGHT if self.sign > 0 else LEFT)
            return self._observe(), 1.0 if is_right else -1.0, True, False, {}
        if is_at_fork or not is_forward:
            return self._observe(), -1.0 / self.length, False, is_cut, {}
        self.place += 1
        return self._observe(), 0.0, False, is_cut, {}

    def _observe(self) -> Array:
        sign = self.sign if self.place == 0 else 0
        return np.array([sign, self.place == self.length - 1], np.float32)

    def get_state(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.remembers}

    def set_state(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)


class PositionsOfCartPole(CartPoleVectorEnv):
    """CartPole-v1 without its velocities: it observes the cart's position and the pole's angle."""

    def __init__(self, num_envs: int = 1, **kwargs: Any) -> None:
        super().__init__(num_envs, **kwargs)
        whole = self.single_observation_space
        assert isinstance(whole, Box)
        self.single_observation_space = Box(whole.low[::2], whole.high[::2], dtype=np.float32)
        self.observation_space = batch_space(self.single_observation_space, num_envs)

    def reset(self, **kwargs: Any) -> Any:
        observations, infos = super().reset(**kwargs)
        return np.ascontiguousarray(observations[:, ::2]), infos

    def step(self, action: Array) -> Any:
        observations, *rest = super().step(action)
        return np.ascontiguousarray(observations[:, ::2]), *rest
