"""Environments that come one by one, stepped in turn in this process.

They write straight into the unroll: no batch in between, no merged infos. After an episode ends,
the environment's next row is its reset, so obs[t + 1] of a valid step is always what it led to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np

from tianji.envs.interface import Spaces
from tianji.envs.spaces import ObservationWriter, make_action_cast, observation_fields
from tianji.envs.state import get_env_state, set_env_state
from tianji.types import Array, Field, Unroll


class SingleWorld:
    """A World over separate environments."""

    keeps_final = False

    def __init__(self, envs: Sequence[gym.Env[Any, Any]]) -> None:
        self.envs = tuple(envs)
        self.num_envs = len(envs)
        self.spaces = Spaces(envs[0].observation_space, envs[0].action_space)
        self._writer = ObservationWriter(self.spaces.observation)
        self._cast = make_action_cast(self.spaces.action)
        self._ended = [False] * self.num_envs
        self._closed = False

    def observation_fields(self) -> tuple[Field, ...]:
        return observation_fields(self.spaces.observation, keeps_final=False)

    def reset(self, seed: int, unroll: Unroll) -> None:
        for i, (env, env_seed) in enumerate(
            zip(self.envs, env_seeds(seed, self.num_envs), strict=True)
        ):
            observation, _ = env.reset(seed=env_seed)
            self._writer.check(observation, ())
            self._writer.write(observation, unroll, (0, i))
        self._ended = [False] * self.num_envs

    def step(self, actions: Array, unroll: Unroll, t: int) -> None:
        ended, write, row = self._ended, self._writer.write, t + 1
        unroll["valid"][t] = [not was_ended for was_ended in ended]
        rewards: list[SupportsFloat] = []
        terminations, truncations = [], []
        for i, (env, action) in enumerate(zip(self.envs, self._cast(actions), strict=True)):
            if ended[i]:
                observation, _ = env.reset()
                terminated = truncated = False
                rewards.append(0.0)
            else:
                observation, reward, terminated, truncated, _ = env.step(action)
                rewards.append(reward)
            write(observation, unroll, (row, i))
            terminations.append(terminated)
            truncations.append(truncated)
            ended[i] = bool(terminated or truncated)
        unroll["reward"][t] = rewards
        unroll["terminated"][t] = terminations
        unroll["truncated"][t] = truncations

    def get_state(self) -> dict[str, Any] | None:
        states = [get_env_state(env) for env in self.envs]
        return None if None in states else {"ended": list(self._ended), "envs": states}

    def set_state(self, state: dict[str, Any]) -> None:
        self._ended = list(state["ended"])
        for env, env_state in zip(self.envs, state["envs"], strict=True):
            env.reset(seed=0)  # wrappers refuse to step before the first reset
            set_env_state(env, env_state)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            for env in self.envs:
                env.close()


def env_seeds(seed: int, count: int) -> list[int]:
    """One seed for each environment; 30 bits, which native code and `seed + index` can hold."""
    return [int(word) >> 2 for word in np.random.SeedSequence(seed).generate_state(count)]
