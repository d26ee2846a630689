"""Vector CartPole whose steps cost more: a simulator with a chosen price per environment step."""

from __future__ import annotations

import time
from typing import Any

from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv


class WorkingCartPole(CartPoleVectorEnv):
    """Keeps its core busy for work_us after every step of every environment. It computes and does
    not sleep: a sleeping simulator would overlap with anything, even on one core."""

    work_us = 0.0

    def step(self, action: Any) -> Any:
        result = super().step(action)
        ends = time.perf_counter() + self.num_envs * self.work_us * 1e-6
        while time.perf_counter() < ends:
            pass
        return result


def make(num_envs: int, work_us: float = 0.0) -> WorkingCartPole:
    made = WorkingCartPole(num_envs=num_envs, max_episode_steps=500)
    made.work_us = work_us
    return made
