"""An environment of your own, trained from Python and from the command line.

    python 02_custom_environment.py
    tianji train --env 02_custom_environment:Chase --max-env-steps 100_000

Anything that follows Gymnasium's Env will do: TianJi makes as many as it needs, in as many
processes as it uses. Nothing has to be registered.
"""

from __future__ import annotations

import sys
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete

import tianji

STEP = 0.2


class Chase(gym.Env[np.ndarray, int]):
    """Follow a point on a line that wanders: move left, stay or move right."""

    def __init__(self, length: int = 50) -> None:
        self.observation_space = Box(-np.inf, np.inf, (1,), np.float32)
        self.action_space = Discrete(3)
        self.length = length

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        self.distance = self.np_random.uniform(-1.0, 1.0)
        return np.array([self.distance], np.float32), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        self.distance += self.np_random.normal(0.0, 0.1) + STEP * (int(action) - 1)
        reward = 1.0 if abs(self.distance) < STEP else 0.0
        # A time limit is a truncation: the world would go on, so its value is not 0.
        return np.array([self.distance], np.float32), reward, False, self.steps >= self.length, {}


if __name__ == "__main__":
    max_env_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    summary, policy = tianji.train(
        env=Chase, env_kwargs={"length": 50}, gamma=0.9, max_env_steps=max_env_steps
    )
    print(f"mean return {summary['mean_return_100']:.1f} of 50")
    for distance in (-1.0, 0.0, 1.0):
        action = policy.act(np.array([distance], np.float32))
        print(f"at {distance:+.1f}: {('left', 'stay', 'right')[action]}")
