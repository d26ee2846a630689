"""A world of separate environments that step one after another in this process.

Results go straight into the unroll, without a batch in between and without merged infos. The row
after the end of an episode is the environment's reset, so obs[t + 1] of a valid step is always the
observation that the step led to.

With a Mending, an environment that raises is replaced. The row in which it failed is not valid and
ends in the first observation of its replacement, so the steps before it bootstrap from the last
good observation, as at a truncation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np

from tianji.envs.interface import Spaces, World
from tianji.envs.mending import Mending
from tianji.envs.returned import STORE_ERRORS, ReturnCheck, env_name
from tianji.envs.spaces import ObservationWriter, make_action_cast
from tianji.envs.state import get_env_state, set_env_state
from tianji.types import Array, Unroll


class SingleWorld(World):
    """A World over separate environments."""

    keeps_final = False

    def __init__(self, envs: Sequence[gym.Env[Any, Any]], mending: Mending | None = None) -> None:
        """mending: replaces an environment that raises; without it the error is passed on."""
        self.envs = tuple(envs)
        self._mending = mending
        self._seeds = [0] * len(envs)
        self._num_steps = 0
        self.num_envs = len(envs)
        self.spaces = Spaces(envs[0].observation_space, envs[0].action_space)
        self._writer = ObservationWriter(self.spaces.observation)
        self._cast = make_action_cast(self.spaces.action)
        self._check = ReturnCheck(env_name(envs[0]), self.spaces.observation)
        self._is_first_step = True
        self._actions: Array | None = None
        self._ended = [False] * self.num_envs
        self._closed = False

    @property
    def remarks(self) -> tuple[str, ...]:
        return self._check.remarks

    def reset(self, seed: int, unroll: Unroll) -> None:
        self._seeds = env_seeds(seed, self.num_envs)
        for i, env_seed in enumerate(self._seeds):
            try:
                returned: Any = self.envs[i].reset(seed=env_seed)
            except Exception as error:  # noqa: BLE001 - users' code may raise anything
                returned = self._mend(i, error), {}
            self._check.reset(returned)
            if i == 0:
                self.first_info = returned[1]
            self._writer.write(returned[0], unroll, (0, i))
        self._ended = [False] * self.num_envs

    def send(self, actions: Array) -> None:
        self._actions = self._cast(actions)

    def recv(self, unroll: Unroll, t: int) -> None:
        actions, self._actions = self._actions, None
        assert actions is not None, "recv() needs a send() before it"
        ended, write, row = self._ended, self._writer.write, t + 1
        is_first = self._is_first_step
        self._num_steps += 1
        valid = [not was_ended for was_ended in ended]
        rewards: list[SupportsFloat] = []
        terminations, truncations = [], []
        for i, (env, action) in enumerate(zip(self.envs, actions, strict=True)):
            try:
                returned: Any = self._begin_again(env) if ended[i] else env.step(action)
            except Exception as error:  # noqa: BLE001 - users' code may raise anything
                returned, valid[i] = (self._mend(i, error), 0.0, False, False, {}), False
            if is_first and not ended[i]:
                self._check.step(returned)
                if i == 0:
                    self.first_info = returned[4]
            try:
                observation, reward, terminated, truncated, _ = returned
                write(observation, unroll, (row, i))
            except STORE_ERRORS:  # the check says what is wrong with the value
                if ended[i]:
                    self._check.reset((returned[0], {}))
                else:
                    self._check.step(returned)
                raise
            rewards.append(reward)
            terminations.append(terminated)
            truncations.append(truncated)
            ended[i] = bool(terminated or truncated)
        self._is_first_step = False
        unroll["valid"][t] = valid
        self._write_rewards(rewards, unroll["reward"][t])
        unroll["terminated"][t] = terminations
        unroll["truncated"][t] = truncations

    def _begin_again(self, env: gym.Env[Any, Any]) -> tuple[Any, float, bool, bool, Any]:
        """Reset, and return the observation as a step without a reward and without an end."""
        returned: Any = env.reset()
        try:
            observation, info = returned
        except STORE_ERRORS:
            self._check.reset(returned)
            raise
        return observation, 0.0, False, False, info

    def _write_rewards(self, rewards: list[SupportsFloat], row: Array) -> None:
        try:
            row[:] = rewards
        except STORE_ERRORS:
            for reward in rewards:
                self._check.reward(reward)
            raise

    def _mend(self, index: int, error: Exception) -> Any:
        """Replace an environment that failed; return the first observation of the new one."""
        if self._mending is None:
            raise error
        envs = list(self.envs)
        envs[index], observation = self._mending(
            index, envs[index], error, self._seeds[index], self._num_steps
        )
        self.envs = tuple(envs)
        return observation

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
    """Return one seed for each environment; 30 bits, which fit native code and `seed + index`."""
    return [int(word) >> 2 for word in np.random.SeedSequence(seed).generate_state(count)]
