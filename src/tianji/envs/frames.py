"""Observations of one row as policies see them, with stacks of frames rebuilt.

N: environments, F: rows of frames (K - 1 more than observations), R: rows of observations,
K: frames of a stack.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from tianji.envs.spaces import observation_leaves
from tianji.types import AGE, OBS, Array, Unroll, leaf_name


class ObservationReader:
    """Finds the observations of a space in an unroll.

    >>> ObservationReader(space).row(unroll, t)    # {"": [N, 4, 84, 84]} or {"camera": ...}
    """

    def __init__(self, space: gym.Space[Any]) -> None:
        leaves = observation_leaves(space)
        self._names = {leaf.key: leaf_name(OBS, leaf.key) for leaf in leaves}
        self._dtypes = {leaf.key: leaf.dtype for leaf in leaves}
        self._stacks = {leaf.key: FrameStack(leaf.num_frames) for leaf in leaves if leaf.num_frames}

    def row(self, unroll: Unroll, t: int) -> dict[str, Array]:
        """Return row t by leaf key: views, and copies of stacks, which the next call overwrites."""
        found = {key: unroll[name][t] for key, name in self._names.items()}
        for key, stack in self._stacks.items():
            found[key] = stack.row(unroll[self._names[key]], unroll[leaf_name(AGE, key)], t)
        return found

    def batch(self, obs: Mapping[str, Array]) -> dict[str, Array]:
        """Return observations from anywhere, by leaf name, in the types that unrolls store, by leaf
        key."""
        names = self._names.items()
        return {key: np.ascontiguousarray(obs[name], self._dtypes[key]) for key, name in names}


class FrameStack:
    """Rebuilds the stacks of one row after the other from frames that are stored once."""

    def __init__(self, num_frames: int) -> None:
        self._num_frames = num_frames
        self._stack: Array = np.empty((0,), np.uint8)

    def row(self, frames_FN: Array, age_RN: Array, t: int) -> Array:
        """Return the stacks [N, K, ...] of row t, oldest frame first; zeros before the reset."""
        num_frames, (_, num_envs, *shape) = self._num_frames, frames_FN.shape
        if len(self._stack) != num_envs:
            self._stack = np.empty((num_envs, num_frames, *shape), frames_FN.dtype)
        np.copyto(self._stack, np.moveaxis(frames_FN[t : t + num_frames], 0, 1))
        if (age_RN[t] < num_frames - 1).any():
            self._stack[is_before_reset(age_RN[t], num_frames)] = 0
        return self._stack


def is_before_reset(age_B: Array, num_frames: int) -> Array:
    """Return which frames of these stacks are from before the reset, [B, K]."""
    before: Array = np.arange(num_frames - 1, -1, -1) > age_B[..., None]
    return before
