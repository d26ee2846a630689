"""Two tasks with the same dynamics and different observations, for methods with several tasks.

One task observes the state s as (s, 0), the other as (-s, 1): the last entry names the task.

    tianji train malenia-nigt --envs tianji.envs.twins:plain,tianji.envs.twins:mirrored \
        --env-kwargs.id Hopper-v5

Both are wrappers around the registered environment and keep its time limit, rendering and seeds.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box

from tianji.envs.find import make_single
from tianji.envs.returned import env_name
from tianji.errors import UsageError
from tianji.types import Array


def plain(id: str, **kwargs: Any) -> gym.Env[Any, Any]:
    """Make the environment `id` with observations (s, 0)."""
    return Twin(make_single(id, kwargs), is_mirrored=False)


def mirrored(id: str, **kwargs: Any) -> gym.Env[Any, Any]:
    """Make the environment `id` with observations (-s, 1)."""
    return Twin(make_single(id, kwargs), is_mirrored=True)


class Twin(gym.ObservationWrapper[Any, Any, Any]):
    """Multiplies the state by a sign and appends a bit. It has no state of its own."""

    def __init__(self, env: gym.Env[Any, Any], is_mirrored: bool) -> None:
        super().__init__(env)
        space = env.observation_space
        if not isinstance(space, Box) or len(space.shape) != 1 or space.dtype.kind != "f":
            raise UsageError(
                f"Twins negate the state, so it must be a vector of floats: a Box of one axis. "
                f"{env_name(env)} observes {space}."
            )
        # Both twins have the same space, which contains the observations of both.
        low, high = np.minimum(space.low, -space.high), np.maximum(space.high, -space.low)
        number = space.dtype.type
        self.observation_space = Box(
            np.append(low, number(0)), np.append(high, number(1)), dtype=number
        )
        self._sign, self._bit = number(-1 if is_mirrored else 1), number(is_mirrored)

    def observation(self, observation: Array) -> Array:
        return np.append(self._sign * observation, self._bit)
