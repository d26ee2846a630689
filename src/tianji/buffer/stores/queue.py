"""The queue store: every unroll is taken once, whole, in the order it was put."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tianji.channels.interface import Receiver
from tianji.types import Array, Batch, Stamp


class Queue:
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

    def metrics(self) -> dict[str, float]:
        return {}

    def state(self) -> dict[str, Any]:
        """Return nothing: a resumed run makes the versions again that waiting unrolls belong to."""
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        """Do nothing: nothing was saved."""


def lay_side_by_side(
    receiver: Receiver, slots: list[int], env_axes: Mapping[str, int | None]
) -> dict[str, Array]:
    """Return every field of these unrolls as one batch."""
    return {
        name: _side_by_side(array, slots, env_axes[name]) for name, array in receiver.arrays.items()
    }


def _side_by_side(array: Array, slots: list[int], env_axis: int | None) -> Array:
    """Join unrolls along the environment axis, or along the first where a field has none. A single
    unroll is read in place."""
    if len(slots) == 1:
        only: Array = array[slots[0]]
        return only
    return np.concatenate([array[slot] for slot in slots], axis=env_axis or 0)
