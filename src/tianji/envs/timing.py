"""Random actions, and how long a step takes at a first glance."""

from __future__ import annotations

import time

import numpy as np
from gymnasium import spaces

from tianji.envs.interface import World
from tianji.types import Array, Unroll

GLANCE_S = 0.05
GLANCE_STEPS = 64


def random_actions(world: World, num_rows: int) -> Array:
    """The same in every call, and as policies make them: integers begin at 0."""
    space = world.spaces.action
    space.seed(1)
    sampled = np.array([space.sample() for _ in range(num_rows * world.num_envs)])
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        sampled = sampled - space.start
    return sampled.reshape(num_rows, world.num_envs, *(space.shape or ()))


def glance_at_step(world: World, rows: Unroll) -> float | None:
    """Seconds that a common step of one environment takes, from a few of a world that was reset;
    None where one fails: the run will tell, and whether it can live with that.

    rows: room for one step (make_rows).
    """
    step_s: list[float] = []
    deadline = time.perf_counter() + GLANCE_S
    for actions in random_actions(world, GLANCE_STEPS):
        began = time.perf_counter()
        try:
            world.step(actions, rows, 0)
        except Exception:  # noqa: BLE001 - a world that fails now and then can be trained on
            return None
        ended = time.perf_counter()
        step_s.append(ended - began)
        if ended > deadline:
            break
    return sorted(step_s)[len(step_s) // 2] / world.num_envs
