"""Compares the values that reset() and step() of an environment return with its spaces.

    check = ReturnCheck(env_name(env), env.observation_space)
    check.reset(env.reset(seed=0))         # UsageError for values that cannot be used
    check.step(env.step(action))
    check.remarks                          # values that are used, but must be converted

Worlds check the first reset and the first step, and check again if a value cannot be stored; every
other step costs nothing. Numbers of another dtype than the space's are converted if that loses
only digits: float64 to float32, integers to floats, lists to arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from tianji.envs.spaces import Leaf, follow, observation_leaves, observation_paths
from tianji.errors import UsageError
from tianji.raised import error_in_words
from tianji.types import Array
from tianji.wording import kind_of

STORE_ERRORS = (ValueError, TypeError, LookupError, RuntimeError)
"""Exceptions of storing a value that does not fit; a tensor with a gradient raises RuntimeError."""
STEP = "observation, reward, terminated, truncated, info"
_FLAGS = (bool, np.bool_)
"""Types that need no closer look; comparing NumPy's numbers gives the second one."""
_RANKS = {"b": 0, "u": 1, "i": 1, "f": 2}
"""Ranks of NumPy kinds: a number can be converted to a kind of the same or a higher rank."""


class ReturnCheck:
    """Checks the values that the environments of one world return; they share one space."""

    def __init__(self, name: str, space: gym.Space[Any], num_envs: int | None = None) -> None:
        """num_envs: size of a vector environment; None if environments return single values."""
        self._name = name
        self._leaves = list(zip(observation_leaves(space), observation_paths(space), strict=True))
        self._batch = () if num_envs is None else (num_envs,)
        self._remarks: dict[str, str] = {}
        """One remark for each leaf."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return sentences about values that are converted, and how to avoid that."""
        return tuple(self._remarks.values())

    def reset(self, returned: Any) -> None:
        if not isinstance(returned, tuple | list) or len(returned) != 2:
            raise self._error(
                f"reset() returned {_described(returned)}",
                "it must return 2 values: observation, info. End it with `return observation, {}`.",
            )
        self._observation(returned[0], "reset()")

    def step(self, returned: Any) -> None:
        if not isinstance(returned, tuple | list) or len(returned) != 5:
            raise self._error(f"step() returned {_described(returned)}", _step_advice(returned))
        observation, reward, terminated, truncated, _ = returned
        self._observation(observation, "step()")
        self.reward(reward)
        for name, flag in (("terminated", terminated), ("truncated", truncated)):
            if not self._is_flag(_to_array(flag)):
                must = "True or False" if not self._batch else f"{self._batch[0]} booleans"
                raise self._error(
                    f"step() returned {_described(flag)} as `{name}`", f"it must be {must}."
                )

    def reward(self, reward: Any) -> None:
        if not self._are_numbers(_to_array(reward)):
            must = (
                f"{self._batch[0]} numbers, one for each environment"
                if self._batch
                else "a single number, such as float(reward)"
            )
            raise self._error(
                f"step() returned {_described(reward)} as the reward", f"it must be {must}."
            )

    def _are_numbers(self, array: Array) -> bool:
        return array.shape == self._batch and array.dtype.kind in _RANKS

    def _is_flag(self, array: Array) -> bool:
        return self._are_numbers(array) and bool(np.isin(array, (0, 1)).all())

    def _observation(self, observation: Any, source: str) -> None:
        for leaf, path in self._leaves:
            name = f"entry '{leaf.key}' of the observation" if leaf.key else "the observation"
            try:
                value = follow(observation, path)
            except (LookupError, TypeError) as error:
                raise self._error(
                    f"{source} returned no {name} ({error_in_words(error)})",
                    "its observation space has it. Make the two agree.",
                ) from error
            self._leaf(value, leaf, name, source)

    def _leaf(self, value: Any, leaf: Leaf, name: str, source: str) -> None:
        space_dtype, expected = np.dtype(leaf.space.dtype), (*self._batch, *leaf.shape)
        array = _to_array(value)
        advice = ""
        if array.dtype.kind not in _RANKS:
            advice = f"Return a NumPy array of numbers: np.array(..., np.{space_dtype})."
        elif array.shape != expected:
            advice = "Return the shape that the space says, or correct the space."
        elif _RANKS[array.dtype.kind] > _RANKS[space_dtype.kind]:
            advice = (
                "Converting it would cut off fractions. Return whole numbers "
                f"(.astype(np.{space_dtype})), or give the space a dtype of floats."
            )
        elif _wraps(array, space_dtype):
            advice = "Its values do not fit into that dtype. Correct the values or the space."
        if advice:
            raise self._error(
                f"{name} that {source} returned is {_described(value)}",
                f"its observation space says shape {expected}, dtype {space_dtype}. {advice}",
            )
        if _is_converted(value, array, space_dtype):
            found = f"dtype {array.dtype}" if _is_numpy(value) else kind_of(value)
            self._remarks[leaf.key] = (
                f"Environment '{self._name}': {name} is {found} where the space says dtype "
                f"{space_dtype}. It is converted in every step; to avoid that, return "
                f"np.array(..., np.{space_dtype})."
            )

    def _error(self, found: str, must: str) -> UsageError:
        return UsageError(f"Environment '{self._name}': {found}, but {must}")


class AgentsCheck(ReturnCheck):
    """Checks the values that parallel environments return: dictionaries with entries by agent.

    Errors name the agent. Every step is checked, since each kind of value has a quick test: with 8
    agents that costs 5 of 45 us.
    """

    def parts_of_reset(self, returned: Any) -> Any:
        """Return the observations and the infos."""
        if not isinstance(returned, tuple | list) or len(returned) != 2:
            raise self._error(
                f"reset() returned {_described(returned)}",
                "it must return 2 dictionaries: observations, infos.",
            )
        self._dictionaries("reset()", ("observations", "infos"), returned)
        return returned

    def parts_of_step(self, returned: Any) -> Any:
        """Return observations, rewards, terminated, truncated and infos."""
        if not isinstance(returned, tuple | list) or len(returned) != 5:
            raise self._error(f"step() returned {_described(returned)}", _step_advice(returned))
        names = ("observations", "rewards", "terminated", "truncated", "infos")
        self._dictionaries("step()", names, returned)
        return returned

    def first_observation(self, observations: Mapping[str, Any], agent: str) -> Any:
        """Return the observation that an agent begins with."""
        if agent not in observations:
            raise self._error(
                f"reset() returned no observation for agent '{agent}'",
                f"it must have one for each of its `agents`, and it has {list(observations)}.",
            )
        return observations[agent]

    def agents_observation(self, observation: Any, agent: str, source: str) -> None:
        """Check an observation. source: `reset()` or `step()`."""
        self._observation(observation, f"{source} for agent '{agent}'")

    def agents_reward(self, rewards: Mapping[str, Any], agent: str, is_seen: bool) -> Any:
        """Return the reward of an agent; only one that left without an observation needs none."""
        if agent not in rewards:
            if not is_seen:
                return 0.0
            raise self._error(
                f"step() returned no reward for agent '{agent}'",
                f"it must have one for each agent that acted, and it has {list(rewards)}.",
            )
        reward = rewards[agent]
        # NumPy would store None as NaN, which looks like a training that diverged.
        if type(reward) is not float and not self._are_numbers(_to_array(reward)):
            raise self._error(
                f"step() returned {_described(reward)} as the reward of agent '{agent}'",
                "it must be a single number, such as float(reward).",
            )
        return reward

    def agents_flag(self, flags: Mapping[str, Any], agent: str, name: str) -> bool:
        """Return whether an agent's episode has ended; it goes on where nothing is said."""
        flag = flags.get(agent, False)
        if type(flag) not in _FLAGS and not self._is_flag(_to_array(flag)):
            raise self._error(
                f"step() returned {_described(flag)} as `{name}` of agent '{agent}'",
                "it must be True or False.",
            )
        return bool(flag)

    def _dictionaries(self, source: str, names: Sequence[str], parts: Sequence[Any]) -> None:
        for name, part in zip(names, parts, strict=True):
            if type(part) is not dict and not isinstance(part, Mapping):
                raise self._error(
                    f"{source} returned {_described(part)} as the {name}",
                    "it must be a dictionary with an entry for each agent.",
                )


def env_name(env: Any) -> str:
    """Return the id of an environment, or its class name if it has no id."""
    return env.spec.id if env.spec is not None else type(env.unwrapped).__name__


def _step_advice(returned: Any) -> str:
    advice = f"it must return 5 values: {STEP}."
    if isinstance(returned, tuple | list) and len(returned) == 4:
        advice += (
            " 4 values are those of the old Gym: split its `done` into `terminated` (the task is "
            "over) and `truncated` (a time limit cut the episode)."
        )
    return advice


def _to_array(value: Any) -> Array:
    """Return an array; one of dtype object if NumPy cannot convert the value (a ragged list)."""
    try:
        return np.asarray(value)
    except STORE_ERRORS:
        return np.empty((), object)


def _is_numpy(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic)


def _is_converted(value: Any, array: Array, dtype: np.dtype[Any]) -> bool:
    """Return whether storing changes the kind of number or its digits, or converts a list."""
    same_kind = _RANKS[array.dtype.kind] == _RANKS[dtype.kind]
    if isinstance(value, bool | int | float):  # as Discrete spaces have them
        return not same_kind
    return not (same_kind and _is_numpy(value) and np.can_cast(array.dtype, dtype))


def _wraps(array: Array, dtype: np.dtype[Any]) -> bool:
    """Return whether integers would overflow; floats only lose digits."""
    if dtype.kind == "f" or np.can_cast(array.dtype, dtype):
        return False
    return not np.array_equal(array.astype(dtype), array)


def _described(value: Any) -> str:
    array = _to_array(value)
    if isinstance(value, tuple) and len(value) > 1:
        return f"{len(value)} values"
    if array.dtype.kind not in _RANKS or array.shape == ():
        return f"{value!r:.80} ({type(value).__name__})"
    kind = "an array" if _is_numpy(value) else kind_of(value)
    return f"{kind} of shape {array.shape}, dtype {array.dtype}"
