"""Vector CartPole that opens the recorder's window at one step and closes it at a later one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv

from benchmarks.step_path.recorder import CLOSED, FOLDER_VARIABLE, OPEN, Window

UNROLL_LENGTH = 32
OPENS_AT = 20 * UNROLL_LENGTH  # by then every role has done everything once
CLOSES_AT = OPENS_AT + 8 * UNROLL_LENGTH  # enough for a few updates and policies


class MarkedCartPole(CartPoleVectorEnv):
    """Counts its steps; the first copy that reaches a mark moves the window."""

    def __init__(self, num_envs: int) -> None:
        super().__init__(num_envs=num_envs, max_episode_steps=500)
        self._window = Window(Path(os.environ[FOLDER_VARIABLE]))
        self._steps = 0

    def step(self, action: Any) -> Any:
        self._steps += 1
        if self._steps == OPENS_AT:
            self._window.state = OPEN
        elif self._steps == CLOSES_AT:
            self._window.state = CLOSED
        return super().step(action)


def make(num_envs: int) -> MarkedCartPole:
    return MarkedCartPole(num_envs)
