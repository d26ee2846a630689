"""CartPole whose steps take 5 ms of waiting, so that cores are not the limit."""

from __future__ import annotations

import time
from typing import Any

import gymnasium as gym

STEP_S = 0.005


class Sleeping(gym.Wrapper[Any, Any, Any, Any]):
    """Sleeps in every step."""

    def step(self, action: Any) -> Any:
        time.sleep(STEP_S)
        return super().step(action)


def make_env() -> gym.Env[Any, Any]:
    return Sleeping(gym.make("CartPole-v1"))
