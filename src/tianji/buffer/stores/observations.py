"""Observations of a replay store: each frame is stored once, stacks are rebuilt by index.

L: lanes, R: rows of a ring, N: environments of a lane, K: frames of a stack, B: chosen items.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from tianji.types import Array


class Observations(Protocol):
    """One leaf of the observations of all lanes, by (lane, row, environment)."""

    def write(self, lane: int, row: int, rows_TN: Array) -> None:
        """Store consecutive rows from `row` on; row R is row 0."""
        ...

    def gather(self, lane_B: Array, row_B: Array, env_B: Array, age_B: Array | None) -> Any:
        """Return these observations [B, ...], an array or a tensor.

        age_B: observations since the reset, where a leaf is a stack; older frames are zero.
        """
        ...

    def replace(self, gathered: Any, place_B: Array, values_B: Array) -> None:
        """Put other observations at these places of what was gathered."""
        ...

    def read(self, lane: int, row: int, count: int) -> Array:
        """Return a copy of consecutive rows, to be saved."""
        ...


class HostObservations:
    """Observations in main memory."""

    def __init__(self, memory_LRN: Array, num_frames: int) -> None:
        """num_frames: frames of a stack; 0 where observations are stored as they are."""
        self._lanes = memory_LRN
        self._shape = memory_LRN.shape[1:3]
        self._flat = memory_LRN.reshape(-1, *memory_LRN.shape[3:])
        self._num_frames = num_frames

    def write(self, lane: int, row: int, rows_TN: Array) -> None:
        write_rows(self._lanes[lane], row, rows_TN)

    def gather(self, lane_B: Array, row_B: Array, env_B: Array, age_B: Array | None) -> Array:
        if age_B is None:
            return self._flat.take(flat_index(self._shape, lane_B, row_B, env_B), axis=0)
        at_BK, is_unseen_BK = stack_index(
            self._shape, lane_B, row_B, env_B, age_B, self._num_frames
        )
        stacks: Array = self._flat.take(at_BK, axis=0)
        if is_unseen_BK.any():
            stacks[is_unseen_BK] = 0
        return stacks

    def replace(self, gathered: Array, place_B: Array, values_B: Array) -> None:
        gathered[place_B] = values_B

    def read(self, lane: int, row: int, count: int) -> Array:
        return read_rows(self._lanes[lane], row, count)


def flat_index(shape: tuple[int, int], lane_B: Array, row_B: Array, env_B: Array) -> Array:
    """Return the places of (lane, row, environment) in memory. shape: rows and environments."""
    num_rows, num_envs = shape
    index: Array = (lane_B * num_rows + row_B % num_rows) * num_envs + env_B
    return index


def stack_index(
    shape: tuple[int, int],
    lane_B: Array,
    row_B: Array,
    env_B: Array,
    age_B: Array,
    num_frames: int,
) -> tuple[Array, Array]:
    """Return the places of the frames of these stacks, oldest first, and which are not of this
    episode: [B, K] each."""
    back_K = np.arange(num_frames - 1, -1, -1)
    at_BK = flat_index(shape, lane_B[:, None], row_B[:, None] - back_K, env_B[:, None])
    return at_BK, back_K > age_B[:, None]


def write_rows(ring_R: Array, row: int, rows_T: Array) -> None:
    """Copy consecutive rows into a ring."""
    num_rows, count = len(ring_R), len(rows_T)
    begin = row % num_rows
    if (end := begin + count) <= num_rows:
        ring_R[begin:end] = rows_T
    else:
        ring_R[begin:] = rows_T[: num_rows - begin]
        ring_R[: end - num_rows] = rows_T[num_rows - begin :]


def read_rows(ring_R: Array, row: int, count: int) -> Array:
    """Return a copy of consecutive rows of a ring."""
    rows: Array = ring_R.take(np.arange(row, row + count) % len(ring_R), axis=0)
    return rows
