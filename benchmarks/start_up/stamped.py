"""Vector CartPole that notes when it was first stepped, so that start-up is timed from outside."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv

STAMP_VARIABLE = "BENCH_FIRST_STEP_FILE"


class StampedCartPole(CartPoleVectorEnv):
    """The first step of all copies in a run writes CLOCK_MONOTONIC into a file."""

    _stamped = False

    def step(self, action: Any) -> Any:
        if not self._stamped:
            self._stamped = True
            _stamp()
        return super().step(action)


def _stamp() -> None:
    if not sys.argv[0].endswith("worker.py"):
        return  # the planner looks at the environment before the run begins
    try:
        with open(os.environ[STAMP_VARIABLE], "x") as file:
            file.write(str(time.monotonic()))
    except FileExistsError:
        return  # another actor's was first


def make(num_envs: int) -> StampedCartPole:
    return StampedCartPole(num_envs=num_envs, max_episode_steps=500)
