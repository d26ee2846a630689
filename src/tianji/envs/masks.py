"""Action masks: environments that say which actions are legal.

A wrapper moves masks from infos, or from a dictionary observation, into observations of a space of
its own (`Masked`). They then travel as one more leaf: every observation in an unroll, in a replay
store or in an evaluation comes with the mask of its actions. Networks do not see that leaf; what
they put out for illegal actions is replaced (models/masks.py).

    env = MaskedEnv(env, "info", "Chess-v0")           # or the name of an observation
    env.reset()                                        # {"": observation, "action_mask": mask}, {}

N: environments, A: options of all choices of an action, side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv, VectorWrapper

from tianji.envs.interface import INFO_MASK, NO_MASK, Spaces
from tianji.envs.spaces import ACTION_MASK, SEEN, Masked, choice_sizes
from tianji.errors import TianjiError, UsageError
from tianji.types import OBS, Array, Unroll, leaf_name
from tianji.wording import kind_of

AUTO_MASK = "auto"
FINAL_OBS, FINAL_INFO = "final_obs", "final_info"
"""What a vector environment that resets in the same step says about the episodes that ended."""


def find_mask(found: Spaces, info: Mapping[str, Any], name: str) -> str:
    """Return where an environment keeps its masks: an observation `action_mask`, or infos; `none`
    if it has none.

    info: that of a reset or of a step. name: of the environment, for errors. Raises UsageError for
    an `action_mask` that cannot be used: without it, the policy would take illegal actions.
    """
    size = sum(choice_sizes(found.action))
    entries = found.observation.spaces if isinstance(found.observation, spaces.Dict) else {}
    entry, mask = entries.get(ACTION_MASK), _first_mask(info)
    if entry is None and mask is None:
        return NO_MASK
    if entry is not None and len(entries) == 1:
        raise UsageError(
            f"Environment '{name}' observes nothing but '{ACTION_MASK}', so that the policy would "
            "see nothing. Add an entry for it to see, or use --action-mask none, which makes "
            f"'{ACTION_MASK}' an ordinary observation."
        )
    if size and entry is not None and entry.shape == (size,):
        return ACTION_MASK
    if mask is None:
        unusable = f"the observation '{ACTION_MASK}' is {entry}"
    else:
        _, fault = read_mask(mask, size)
        if size and not fault:
            return INFO_MASK
        unusable = f"info['{ACTION_MASK}'] is {fault or 'there'}"
    must = f"masks are zeros and ones of shape ({size},)" if size else "there are no masks"
    raise UsageError(
        f"Environment '{name}' has an action mask that cannot be used: {unusable}, but for the "
        f"action space {found.action} {must}. --action-mask none ignores it."
    )


REFUSALS = ("AssertionError", "ValueError")
"""What environments raise for illegal actions."""


def advice_on_illegal(found: Spaces, failure: str) -> str:
    """Return a sentence on illegal actions, with a blank before it, where they may be why a step
    failed; else nothing. failure: what it raised, in words."""
    may_refuse = bool(choice_sizes(found.action)) and found.mask is None
    if not may_refuse or not failure.startswith(REFUSALS):
        return ""
    return (
        " If not all actions are legal, give info['action_mask'] in reset() too, not only in "
        "step()."
    )


def _first_mask(info: Any) -> Any:
    """Return the mask in an info; of a vector environment, that of the first environment with one.

    Gymnasium puts masks that are no arrays into an array of objects.
    """
    masks = info.get(ACTION_MASK) if isinstance(info, Mapping) else None
    if isinstance(masks, np.ndarray) and masks.dtype == object and masks.ndim == 1:
        return next((mask for mask in masks if mask is not None), None)
    return masks


def read_mask(value: Any, size: int) -> tuple[Array, str]:
    """Return a mask, or a batch of masks, as booleans, and what is wrong with it, in words; ""
    where it can be used. Lists and floats can, if they hold nothing but zeros and ones."""
    try:
        mask = np.asarray(value)
    except ValueError:  # lists of different lengths
        mask = np.empty((), object)
    if mask.dtype.kind not in "buif":
        return mask, f"{kind_of(value)} that is no array of numbers"
    is_legal: Array = mask != 0
    if mask.dtype.kind == "f" and (mask[is_legal] != 1).any():
        return mask, f"{mask.tolist()!s:.80}, which is not made of 0 and 1"
    if mask.shape[-1:] != (size,):
        return mask, f"of shape {mask.shape}"
    return is_legal, ""


def begins_of(action: gym.Space[Any]) -> Array:
    """Return where the options of each choice begin in a mask."""
    begins: Array = np.cumsum((0, *choice_sizes(action)[:-1]))
    return begins


def allows_every_choice(is_legal: Array, begins: Array) -> bool:
    """Return whether a mask, or every mask of a batch, has a legal option for each choice."""
    return bool(np.logical_or.reduceat(is_legal, begins, axis=-1).all())


def masked_space(
    observation: gym.Space[Any], action: gym.Space[Any], source: str, name: str
) -> Masked:
    """Return the space with masks; UsageError where there can be none."""
    size = sum(choice_sizes(action))
    if not size:
        raise UsageError(
            f"Environment '{name}' has the action space {action}, and action_mask is '{source}': "
            "masks are for Discrete, MultiDiscrete and MultiBinary. Set action_mask to none."
        )
    entries = observation.spaces if isinstance(observation, spaces.Dict) else {}
    if source == INFO_MASK:
        if ACTION_MASK in entries and len(entries) > 1:  # it cannot have the name of the masks
            observation = _without(entries, ACTION_MASK)
        return Masked(observation, ACTION_MASK, size, from_info=True)
    if source not in entries or len(entries) < 2:
        raise UsageError(
            f"action_mask is '{source}', which must be auto, none, info, or one of several entries "
            f"of a dictionary observation. Environment '{name}' observes "
            + (f"{', '.join(entries)}." if entries else f"{observation}.")
        )
    if entries[source].shape != (size,):
        raise UsageError(
            f"Observation '{source}' of environment '{name}' has shape {entries[source].shape}, "
            f"but as a mask of {action} it must have ({size},): one entry for each option."
        )
    return Masked(_without(entries, source), source, size, from_info=False)


def _without(entries: Mapping[str, gym.Space[Any]], key: str) -> spaces.Dict:
    return spaces.Dict({name: entry for name, entry in entries.items() if name != key})


class Masks:
    """Takes masks from what environments return, and checks that there is always a legal action."""

    def __init__(self, space: Masked, action: gym.Space[Any], name: str) -> None:
        self._space = space
        self._name = name
        self._begins = begins_of(action)
        self._everything = np.ones(space.size, np.int8)

    def one(self, observation: Any, info: Mapping[str, Any], has_ended: bool) -> dict[str, Any]:
        """Return the observation of one environment with its mask. At the end of an episode, where
        no action follows, a mask may be missing or allow nothing."""
        seen, mask = self._split(observation, info)
        return {SEEN: seen, self._space.key: self._checked(mask, has_ended)}

    def batch(
        self, observations: Any, infos: Mapping[str, Any], has_ended_N: Array
    ) -> dict[str, Any]:
        """Return the same for all environments of a vector environment."""
        seen, masks = self._split(observations, infos)
        given_N = infos.get(f"_{ACTION_MASK}") if self._space.from_info else None
        rows = [
            self._checked(
                None if masks is None or (given_N is not None and not given_N[i]) else masks[i],
                bool(has_ended),
            )
            for i, has_ended in enumerate(has_ended_N)
        ]
        return {SEEN: seen, self._space.key: np.stack(rows)}

    def _split(self, observation: Any, info: Mapping[str, Any]) -> tuple[Any, Any]:
        if self._space.from_info:
            return observation, info.get(ACTION_MASK)
        key = self._space.key
        return {name: x for name, x in observation.items() if name != key}, observation[key]

    def _checked(self, mask: Any, has_ended: bool) -> Array:
        if mask is None:
            if has_ended:
                return self._everything
            raise TianjiError(
                f"Environment '{self._name}' gave no info['{ACTION_MASK}']: it must be in the info "
                "of every reset() and step(), except at the end of an episode. Add it, or set "
                "action_mask to none."
            )
        is_legal, fault = read_mask(mask, self._space.size)
        if fault or is_legal.ndim != 1:
            raise TianjiError(
                f"Environment '{self._name}' gave a mask {fault or f'of shape {is_legal.shape}'}, "
                f"but its actions have {self._space.size} options: one entry for each, 1 where it "
                "is legal. If action_mask is none, masks are ignored."
            )
        if not allows_every_choice(is_legal, self._begins):
            if has_ended:
                return self._everything
            raise TianjiError(
                f"Environment '{self._name}' gave a mask without a legal action, in the middle of "
                "an episode. If nothing can be done, end the episode there (terminated or "
                "truncated), or add an action that passes."
            )
        return is_legal.astype(np.int8)


class MaskedEnv(gym.Wrapper[Any, Any, Any, Any]):
    """One environment whose observations have masks. It has no state of its own."""

    def __init__(self, env: gym.Env[Any, Any], source: str, name: str) -> None:
        """source: `info`, or the name of an observation. name: of the environment, for errors."""
        super().__init__(env)
        space = masked_space(env.observation_space, env.action_space, source, name)
        self.observation_space = space
        self._masks = Masks(space, env.action_space, name)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        return self._masks.one(observation, info, has_ended=False), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        has_ended = bool(terminated or truncated)
        observed = self._masks.one(observation, info, has_ended)
        return observed, reward, terminated, truncated, info


class MaskedVector(VectorWrapper):
    """A vector environment whose observations have masks. It has no state of its own."""

    def __init__(self, env: VectorEnv[Any, Any, Any], source: str, name: str) -> None:
        super().__init__(env)
        action = env.single_action_space
        space = masked_space(env.single_observation_space, action, source, name)
        self.single_observation_space = space
        self._masks = Masks(space, action, name)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> Any:
        only = (options or {}).get("reset_mask")
        observation, infos = self.env.reset(seed=seed, options=options)
        # Those that are not reset may give anything: nobody reads it.
        kept_N = np.zeros(self.num_envs, np.bool_) if only is None else ~np.asarray(only, np.bool_)
        return self._masks.batch(observation, infos, kept_N), infos

    def step(self, actions: Any) -> Any:
        observation, reward, terminated, truncated, infos = self.env.step(actions)
        ended_N = np.logical_or(terminated, truncated)
        final = infos.get(FINAL_OBS)
        if final is not None:
            infos = {**infos, FINAL_OBS: self._with_final_masks(final, infos, ended_N)}
            ended_N = np.zeros_like(ended_N)  # these masks are of the next episodes
        observed = self._masks.batch(observation, infos, ended_N)
        return observed, reward, terminated, truncated, infos

    def _with_final_masks(self, final: Any, infos: Mapping[str, Any], ended_N: Array) -> Any:
        """Add masks to final observations: an object array with an entry for each environment that
        ended (Gymnasium), or a batch (native vector environments)."""
        info = infos.get(FINAL_INFO)
        info = info if isinstance(info, Mapping) else {}
        if not (isinstance(final, np.ndarray) and final.dtype == object):
            return self._masks.batch(final, info, np.ones_like(ended_N))
        found = np.full(len(final), None, object)
        for i in np.flatnonzero(ended_N):
            given = {ACTION_MASK: info[ACTION_MASK][i]} if ACTION_MASK in info else {}
            found[i] = self._masks.one(final[i], given, has_ended=True)
        return found


def with_mask(obs: Any, action_mask: Any, space: Masked, action: gym.Space[Any]) -> dict[str, Any]:
    """Return an observation, or a batch of them, as a policy with masks takes it.

    action_mask: needed where masks come in infos; elsewhere it replaces that of the observation.
    """
    seen = obs
    if not space.from_info:
        seen = {key: x for key, x in obs.items() if key != space.key}
        action_mask = obs.get(space.key) if action_mask is None else action_mask
    if action_mask is None:
        where = f"info['{ACTION_MASK}']" if space.from_info else f"observation '{space.key}'"
        raise UsageError(
            f"This policy was trained with action masks, and there is no {where}: give it the mask "
            "that belongs to the observation, policy.act(observation, action_mask=...)."
        )
    is_legal, fault = read_mask(action_mask, space.size)
    if fault:
        raise UsageError(
            f"The action mask is {fault}; this policy takes shape ({space.size},), or a "
            "batch of them: one entry for each option, 1 where it is legal."
        )
    if not allows_every_choice(is_legal, begins_of(action)):
        raise UsageError(
            "The action mask has no legal action. Where an episode has ended, do not ask for an "
            f"action; elsewhere at least one option of each choice of {action} must be 1."
        )
    return {SEEN: seen, space.key: is_legal.astype(np.int8)}


def mask_in_words(found: Spaces) -> str:
    """Return a sentence about the masks of an environment; empty where it has none."""
    if found.mask is None:
        return ""
    is_info = found.masked_by == INFO_MASK
    source = f"info['{found.mask}']" if is_info else f"the observation '{found.mask}'"
    return f"The policy chooses only among the actions that {source} allows."


def nth_legal(number_N: Array, mask_NA: Array) -> Array:
    """Return for each row the legal option of this number, counted from 0 and around."""
    legal_NA = mask_NA != 0
    wanted_N = number_N % np.maximum(np.count_nonzero(legal_NA, axis=1), 1)
    nth: Array = (np.cumsum(legal_NA, axis=1) > wanted_N[:, None]).argmax(1)
    return nth


def to_legal(actions: Array, unroll: Unroll, t: int, found: Spaces) -> Array:
    """Return actions [N, ...] with illegal ones replaced by legal ones, always in the same way.

    t: the row of the observation that they follow.
    """
    if found.mask is None:
        return actions
    return to_legal_by(actions, unroll[leaf_name(OBS, found.mask)][t], found.action)


def to_legal_by(actions: Array, mask_NA: Array, space: gym.Space[Any]) -> Array:
    """Do so with masks from anywhere."""
    sizes = choice_sizes(space)
    chosen_NK = actions.reshape(len(actions), -1).astype(np.int64)
    parts = np.split(mask_NA, np.cumsum(sizes)[:-1], axis=1)
    for k, mask_NM in enumerate(parts):
        is_illegal_N = mask_NM[np.arange(len(mask_NM)), chosen_NK[:, k]] == 0
        chosen_NK[is_illegal_N, k] = nth_legal(chosen_NK[:, k], mask_NM)[is_illegal_N]
    return chosen_NK.reshape(actions.shape)
