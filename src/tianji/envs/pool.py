"""Environments of EnvPool, which steps them on threads of its own in C++.

    tianji train --env envpool:Pong-v5

Atari tasks give single frames, as those of ALE's own vector environment do: rewards are the game's
own points, and an episode is a whole game. All other tasks give what EnvPool gives.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode

from tianji.envs.atari import games_world, take_frame_arguments
from tianji.envs.find import ENVPOOL, PoolTask
from tianji.envs.interface import World
from tianji.envs.single import env_seeds
from tianji.envs.vector import NextStepWorld, SelfStepping
from tianji.errors import UsageError
from tianji.types import Array

ELSEWHERE = {
    "reward_clip": "rewards are the game's own points here, use normalize.clip_rewards",
    "num_threads": "use emulator_threads",
    "batch_size": "all environments of an actor step together",
    "seed": "use seed",
    "env_seed": "use seed",
    "zero_discount_on_life_loss": "use episodic_life, which marks lost lives",
}
"""Parameters of EnvPool that are decided elsewhere, and where."""


class Pool(SelfStepping):
    """One EnvPool as a vector environment whose reset() obeys its seed.

    EnvPool takes seeds only when it makes its environments, so reset() makes new ones.
    """

    def __init__(self, task: str, kwargs: Mapping[str, Any], num_envs: int) -> None:
        import envpool  # an optional package

        described: Any = envpool.make_spec(task, **{**kwargs, "num_envs": num_envs})
        make: Any = envpool.make_gymnasium
        self.num_envs = num_envs
        self.metadata = {
            "autoreset_mode": AutoresetMode.NEXT_STEP,
            "render_modes": ["rgb_array"],
        }
        self.spec = EnvSpec(f"{ENVPOOL}:{task}")
        self.max_episode_steps = described.config.max_episode_steps
        self.single_observation_space = without_false_bounds(described.gymnasium_observation_space)
        self.single_action_space = described.gymnasium_action_space
        self._make = partial(make, task, **{**kwargs, "num_envs": num_envs})
        self._pool: Any = None
        self._ended = np.zeros(num_envs, np.bool_)

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Make new environments. seed: one number, from which each environment gets its own."""
        assert isinstance(seed, int) and options is None
        self._pool = None  # its threads end before others start
        self._ended[:] = False
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # bounds of spaces that lose digits
            self._pool = self._make(seed=env_seeds(seed, self.num_envs))
            observation, infos = self._pool.reset()
        return observation, infos

    def send(self, actions: Array) -> None:
        self._pool.send(actions)

    def recv(self) -> Any:
        observation, reward, terminated, truncated, infos = self._pool.recv()
        if self._ended.any():  # DeepMind's control tasks repeat the last reward when they are reset
            for values in (reward, terminated, truncated):
                values[self._ended] = 0
        np.logical_or(terminated, truncated, self._ended)
        return observation, reward, terminated, truncated, infos

    def render(self) -> Any:
        return self._pool.render()

    def close_extras(self, **kwargs: Any) -> None:
        self._pool = None


class PoolWorld(NextStepWorld):
    """Environments of one pool, with observations as EnvPool gives them."""

    steps_alone = True


def make_pool(task: PoolTask, num_envs: int, num_threads: int) -> World:
    """Make the environments of one actor."""
    kwargs = dict(task.kwargs)
    for name, advice in ELSEWHERE.items():
        if name in kwargs:
            raise UsageError(f"env_kwargs has '{name}', which is a setting of the run: {advice}.")
    kwargs["num_threads"] = num_threads
    if not _gives_frames(task):
        return PoolWorld(Pool(task.id, kwargs, num_envs))
    asked = take_frame_arguments(kwargs)
    return games_world(Pool(task.id, {**kwargs, "stack_num": asked.num_given}, num_envs), asked)


def _gives_frames(task: PoolTask) -> bool:
    """Return whether it is an Atari game in grey, whose frames are stored once."""
    import envpool
    from envpool.atari import AtariEnvSpec

    return isinstance(envpool.make_spec(task.id), AtariEnvSpec) and task.kwargs.get(
        "gray_scale", True
    )


def without_false_bounds(space: gym.Space[Any]) -> gym.Space[Any]:
    """Return the space with infinite bounds where EnvPool names the limits of the number's type.

    The lower one is even the smallest positive number, which most observations are below.
    """
    if isinstance(space, spaces.Dict):
        return spaces.Dict({key: without_false_bounds(child) for key, child in space.items()})
    if not isinstance(space, spaces.Box) or space.dtype.kind != "f":
        return space
    limits = np.finfo(space.dtype)
    is_lowest = (space.low == limits.tiny) | (space.low == limits.min)
    low = np.where(is_lowest, -np.inf, space.low)
    high = np.where(space.high == limits.max, np.inf, space.high)
    return spaces.Box(low.astype(space.dtype), high.astype(space.dtype), dtype=space.dtype.type)
