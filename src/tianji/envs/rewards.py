"""A first look at rewards: do they say anything about the state of the environment?"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from tianji.envs.interface import World
from tianji.envs.timing import random_actions, step_in_place
from tianji.types import Unroll

LOOK_S = 0.1
"""Seconds of looking, unless the answer is there sooner."""
MOST_STEPS = 2000
LEAST_STEPS = 200
"""After fewer steps than this nothing is concluded from rewards that were all alike."""
LEAST_STEPS_S = 1.0
"""Most seconds for LEAST_STEPS, so that a busy machine comes to the conclusion of a quiet one."""
NUM_ACTIONS = 16
"""Different actions, so that each is made many times."""


@dataclass(frozen=True, slots=True)
class RewardLook:
    """What random actions have shown of the rewards.

    >>> RewardLook(num_steps=2000, depend_on_state=False)
    """

    num_steps: int
    depend_on_state: bool
    """The same action brought different rewards, or an action ended an episode. If not, rewards are
    constant or a mere cost of the actions: a goal exists perhaps, but nothing leads to it."""

    @property
    def is_silent(self) -> bool:
        """Return whether enough steps were made to say that rewards tell nothing of the state."""
        return not self.depend_on_state and self.num_steps >= LEAST_STEPS


def look_at_rewards(world: World, rows: Unroll) -> RewardLook:
    """Make random steps in a world that was reset; what one raises is passed on.

    A few actions are made again and again in random order, so that each is made in many states.
    rows: arrays for one step (make_rows).
    """
    actions_A = random_actions(world, NUM_ACTIONS)
    order = np.random.default_rng(1).integers(NUM_ACTIONS, size=MOST_STEPS)
    first_AN = np.full((NUM_ACTIONS, world.num_envs), np.nan, np.float32)
    started_s = time.perf_counter()
    for num_steps, a in enumerate(order, start=1):
        step_in_place(world, actions_A[a], rows)
        reward_N = np.where(rows["valid"][0], rows["reward"][0], np.nan)
        first_AN[a] = np.where(np.isnan(first_AN[a]), reward_N, first_AN[a])
        differs_N = np.abs(reward_N - first_AN[a]) > np.float32(1e-6)  # False where one is missing
        if differs_N.any() or rows["terminated"][0].any():
            return RewardLook(num_steps, depend_on_state=True)
        limit_s = LOOK_S if num_steps >= LEAST_STEPS else LEAST_STEPS_S
        if time.perf_counter() - started_s > limit_s:
            break
    return RewardLook(num_steps, depend_on_state=False)
