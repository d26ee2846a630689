"""An environment with rare long steps, such as a simulator that loads a new level now and then."""

from __future__ import annotations

import time
from typing import Any

import gymnasium as gym
import numpy as np

NAP_S = 0.2
STEPS_PER_NAP = 50


class Napping(gym.Env[np.ndarray[Any, Any], int]):
    """One step in 50, at random, takes 200 ms; the others take no time."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (4,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray[Any, Any], dict[str, Any]]:
        super().reset(seed=seed)
        self._steps = 0
        return self._observe(), {}

    def step(self, action: int) -> tuple[np.ndarray[Any, Any], float, bool, bool, dict[str, Any]]:
        if self.np_random.random() < 1.0 / STEPS_PER_NAP:
            time.sleep(NAP_S)
        self._steps += 1
        return self._observe(), 1.0, False, self._steps == 200, {}

    def _observe(self) -> np.ndarray[Any, Any]:
        return self.np_random.uniform(-1.0, 1.0, 4).astype(np.float32)
