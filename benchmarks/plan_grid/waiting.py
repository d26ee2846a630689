"""A world that waits: CartPole whose every step takes a nap, as one that talks to a simulator."""

from __future__ import annotations

import time
from typing import Any

import gymnasium as gym


class Waiting(gym.Wrapper[Any, Any, Any, Any]):
    """Sleeps in every step, without any work for a processor."""

    def __init__(self, env: gym.Env[Any, Any], wait_s: float) -> None:
        super().__init__(env)
        self._wait_s = wait_s

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        time.sleep(self._wait_s)
        return self.env.step(action)


def make(wait_ms: float = 1.0) -> gym.Env[Any, Any]:
    return Waiting(gym.make("CartPole-v1"), wait_ms / 1e3)
