"""The queue store: every unroll is taken once, whole, in the order it was put."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tianji.buffer.interface import Store
from tianji.channels.interface import Receiver
from tianji.types import Array, Batch, Observed, Parts, Stamp, frame_names


class Queue(Store):
    """Takes everything that was put and sets it side by side."""

    def __init__(self, receiver: Receiver, env_axes: Mapping[str, int | None]) -> None:
        """env_axes: where each field of an unroll has its environments; None where it has none."""
        self._receiver = receiver
        self._env_axes = env_axes
        self._held: list[tuple[int, Stamp]] = []

    def put(self, slot: int, stamp: Stamp) -> int:
        self._held.append((slot, stamp))
        return 1

    def num_held(self) -> int:
        return len(self._held)

    def take(self, version: int) -> Batch:
        slots = [slot for slot, _ in self._held]
        stamps = tuple(stamp for _, stamp in self._held)
        arrays = lay_side_by_side(self._receiver, slots, self._env_axes)
        steps = sum(stamp.env_steps for stamp in stamps)
        return Batch(arrays, stamps, num_items=len(slots), num_steps=steps, unique_steps=steps)

    def finish(self, batch: Batch, priorities: Array | None = None) -> None:
        for slot, _ in self._held:
            self._receiver.release(slot)
        self._held.clear()


def lay_side_by_side(
    receiver: Receiver, slots: list[int], env_axes: Mapping[str, int | None]
) -> dict[str, Observed]:
    """Return these fields of these unrolls as one batch."""
    arrays = receiver.arrays
    frames = frame_names(arrays)
    return {
        name: _side_by_side(arrays[name], slots, axis, name in frames)
        for name, axis in env_axes.items()
    }


def _side_by_side(
    array: Array, slots: list[int], env_axis: int | None, is_frames: bool
) -> Observed:
    """Join unrolls along the environment axis, or along the first where a field has none. A single
    unroll is read in place, and frames, which are large, are left in their slots."""
    if len(slots) == 1:
        only: Array = array[slots[0]]
        return only
    parts = tuple(array[slot] for slot in slots)
    return Parts(parts, env_axis or 0) if is_frames else np.concatenate(parts, env_axis or 0)
