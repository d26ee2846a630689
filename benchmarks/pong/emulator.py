"""Pong as every yardstick here plays it: frame skip 4 with max-pooling, 84 x 84 grey, raw rewards.

An ended game is reset in the same step, so every returned row is one agent step.
"""

from __future__ import annotations

from ale_py.vector_env import AtariVectorEnv
from gymnasium.vector import AutoresetMode

NUM_ACTIONS = 6


def make_pong(num_envs: int, num_threads: int, stack_num: int = 4) -> AtariVectorEnv:
    """Make ALE's own C++ vector environment, with up to 30 no-ops and a fire at each reset."""
    return AtariVectorEnv(
        "pong",
        num_envs,
        num_threads=num_threads,
        autoreset_mode=AutoresetMode.SAME_STEP,
        stack_num=stack_num,
        frameskip=4,
        reward_clipping=False,
    )
