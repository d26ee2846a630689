"""Environments that come as one vector environment, in each of the three autoreset modes.

NEXT_STEP   an ended environment is reset in its next step: that row is not valid
SAME_STEP   it is reset at once, and the final observation comes in the infos
DISABLED    it waits for a reset: we reset it at once and keep the final observation ourselves
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from tianji.envs.interface import Spaces, World
from tianji.envs.returned import STORE_ERRORS, ReturnCheck, env_name
from tianji.envs.single import env_seeds
from tianji.envs.spaces import ObservationWriter, make_action_cast, observation_fields
from tianji.envs.state import get_vector_state, set_vector_state
from tianji.errors import TianjiError
from tianji.types import FINAL_OBS, Array, Field, Unroll


def autoreset_mode(env: VectorEnv[Any, Any, Any]) -> AutoresetMode:
    """What the environment says; without a word it is NEXT_STEP, Gymnasium's default."""
    return AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))


def adapt_vector(env: VectorEnv[Any, Any, Any]) -> World:
    """The World for this environment's autoreset mode."""
    if autoreset_mode(env) is AutoresetMode.NEXT_STEP:
        return NextStepWorld(env)
    return SameStepWorld(env, resets_itself=autoreset_mode(env) is AutoresetMode.SAME_STEP)


class _VectorWorld:
    """What both behaviours share: everything but step()."""

    keeps_final: bool

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        self.env = env
        self.num_envs = env.num_envs
        self.spaces = Spaces(env.single_observation_space, env.single_action_space)
        self._writer = ObservationWriter(self.spaces.observation)
        self._check = ReturnCheck(env_name(env), self.spaces.observation, env.num_envs)
        self._is_first_step = True
        self.cast_actions = make_action_cast(self.spaces.action)
        self._ended = np.zeros(env.num_envs, np.bool_)
        self._closed = False

    @property
    def remarks(self) -> tuple[str, ...]:
        return self._check.remarks

    def observation_fields(self) -> tuple[Field, ...]:
        return observation_fields(self.spaces.observation, self.keeps_final)

    def reset(self, seed: int, unroll: Unroll) -> None:
        returned = self.env.reset(seed=self._seeds(seed))
        self._check.reset(returned)
        self._writer.write(returned[0], unroll, 0)
        self._ended[:] = False

    def _step(self, actions: Array, unroll: Unroll, t: int) -> tuple[Any, Any, Any, Any]:
        """Step and store all that step() returned; returns what the autoreset modes look at:
        observation, terminated, truncated, infos."""
        # A few numpy calls of 0.2 us each, against 40 us for 8 vector CartPoles.
        returned: Any = self.env.step(self.cast_actions(actions))
        if self._is_first_step:
            self._is_first_step = False
            self._check.step(returned)
        try:
            observation, reward, terminated, truncated, infos = returned
            self._writer.write(observation, unroll, t + 1)
            unroll["reward"][t] = reward
            unroll["terminated"][t] = terminated
            unroll["truncated"][t] = truncated
        except STORE_ERRORS:
            self._check.step(returned)  # says what is wrong with it
            raise
        return observation, terminated, truncated, infos

    def get_state(self) -> dict[str, Any] | None:
        state = get_vector_state(self.env)
        return None if state is None else {"ended": self._ended.copy(), "env": state}

    def set_state(self, state: dict[str, Any]) -> None:
        self.env.reset(seed=self._seeds(0))  # vector environments refuse to step before a reset
        set_vector_state(self.env, state["env"])
        self._ended[:] = state["ended"]

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self.env.close()

    def _seeds(self, seed: int) -> Any:
        """A list where each environment has its own generator, one number where they share one."""
        if isinstance(self.env.unwrapped, SyncVectorEnv | AsyncVectorEnv):
            return env_seeds(seed, self.num_envs)
        return env_seeds(seed, 1)[0]


class NextStepWorld(_VectorWorld):
    """The row after an episode's end is the reset, and obs[t + 1] is always what a step led to."""

    keeps_final = False

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        super().__init__(env)
        # Not all environments keep to the rule that nothing happens in a reset; these do.
        self._keeps_rule = type(env).__module__.startswith(("gymnasium.", "ale_py."))

    def step(self, actions: Array, unroll: Unroll, t: int) -> None:
        _, terminated, truncated, _ = self._step(actions, unroll, t)
        np.logical_not(self._ended, unroll["valid"][t])
        if self._keeps_rule:
            np.logical_or(terminated, truncated, self._ended)
        else:
            for name in ("reward", "terminated", "truncated"):
                unroll[name][t][self._ended] = 0
            np.logical_or(unroll["terminated"][t], unroll["truncated"][t], self._ended)


class SameStepWorld(_VectorWorld):
    """Every row is valid; at an episode's end, obs[t + 1] belongs to the next episode and
    final_obs[t] to the ended one."""

    keeps_final = True

    def __init__(self, env: VectorEnv[Any, Any, Any], resets_itself: bool) -> None:
        super().__init__(env)
        self._resets_itself = resets_itself
        self._final_writer = ObservationWriter(self.spaces.observation, FINAL_OBS)

    def step(self, actions: Array, unroll: Unroll, t: int) -> None:
        observation, terminated, truncated, infos = self._step(actions, unroll, t)
        unroll["valid"][t] = True
        np.logical_or(terminated, truncated, self._ended)
        if np.count_nonzero(self._ended):
            if self._resets_itself:
                self._take_final(infos, unroll, t)
            else:
                self._reset_ended(observation, unroll, t)

    def _take_final(self, infos: dict[str, Any], unroll: Unroll, t: int) -> None:
        """Gymnasium gives an object array with one observation for each ended environment, native
        vector environments a batch."""
        if "final_obs" not in infos:
            raise TianjiError(
                f"{self.env} says that it resets in the same step, but gives no infos['final_obs'] "
                "when an episode ends, so the value of a truncated episode cannot be known. Let it "
                "give them, or set its metadata['autoreset_mode'] to AutoresetMode.NEXT_STEP if "
                "that is what it does."
            )
        final = infos["final_obs"]
        if isinstance(final, np.ndarray) and final.dtype == object:
            for i in np.flatnonzero(self._ended):
                self._final_writer.write(final[i], unroll, (t, int(i)))
        else:
            self._final_writer.write_where(final, unroll, t, self._ended)

    def _reset_ended(self, final: Any, unroll: Unroll, t: int) -> None:
        self._final_writer.write_where(final, unroll, t, self._ended)
        # A new mask and dictionary every time: Gymnasium takes the mask out of the options.
        first, _ = self.env.reset(options={"reset_mask": self._ended.copy()})
        self._writer.write_where(first, unroll, t + 1, self._ended)
