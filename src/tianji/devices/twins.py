"""Twins of host memory on a GPU: what was uploaded once is found there again.

A twin mirrors one field of all slots. The actor's inference uploads each row into it as the
environments make them, and the learner in the same process then reads the twin of the slot.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from tianji.types import Array


@dataclass(frozen=True, slots=True)
class Twin:
    """The mirror of an array [slots, ...]."""

    address: int
    stride: int
    tensor: Tensor
    ready: dict[int, torch.cuda.Event | None] = field(default_factory=dict)
    """When the rows of each slot have arrived; None where they had when this was noted."""
    num_rows: dict[int, int] = field(default_factory=dict)
    """How many rows of a slot have been uploaded, where that is not all."""

    def complete(self, slot: int, part: Array, num_rows: int) -> None:
        """Upload those of the first num_rows rows of a slot that are missing."""
        begin = self.num_rows.get(slot, num_rows)
        if begin < num_rows:
            rows = torch.from_numpy(part[begin:num_rows])
            self.tensor[slot, begin:num_rows].copy_(rows, non_blocking=True)

    def slot_of(self, part: Array) -> int | None:
        """Return the slot that this array is the whole of."""
        slot, rest = divmod(address_of(part) - self.address, self.stride)
        is_slot = rest == 0 and 0 <= slot < len(self.tensor)
        return slot if is_slot and part.shape == self.tensor.shape[1:] else None


class Twins:
    """All twins of this process."""

    def __init__(self) -> None:
        self._twins: list[Twin] = []

    def add(self, slots: Array, device: torch.device) -> Twin:
        """Make the twin of a field of all slots."""
        kind = torch.from_numpy(slots[:0]).dtype
        tensor = torch.zeros(slots.shape, dtype=kind, device=device)
        twin = Twin(address_of(slots), slots.strides[0], tensor)
        self._twins.append(twin)
        return twin

    def of(self, part: Array) -> tuple[Twin, int] | None:
        """Return the twin that mirrors this slot, and the slot's number."""
        for twin in self._twins:
            slot = twin.slot_of(part)
            if slot is not None:
                return twin, slot
        return None

    def find(self, part: Array) -> Tensor | None:
        """Return the mirror of this slot, for work after its rows have arrived; those that are
        missing are uploaded now."""
        found = self.of(part)
        if found is None or found[1] not in found[0].ready:
            return None
        twin, slot = found
        _await([twin.ready[slot]])
        twin.complete(slot, part, len(part))
        return twin.tensor[slot]

    def find_all(self, parts: Sequence[Array], num_rows: int) -> tuple[Twin, list[int]] | None:
        """Return the twin that mirrors all these slots, and their numbers, for work after their
        first num_rows rows have arrived; None where that is not one twin."""
        found = self.of(parts[0])
        if found is None:
            return None
        twin = found[0]
        numbers = [twin.slot_of(part) for part in parts]
        slots = [slot for slot in numbers if slot is not None and slot in twin.ready]
        if len(slots) < len(parts):
            return None
        _await([twin.ready[slot] for slot in slots])
        for slot, part in zip(slots, parts, strict=True):
            twin.complete(slot, part, num_rows)
        return twin, slots


def address_of(array: Array) -> int:
    """Return where an array begins. `array.ctypes` takes longer."""
    address: int = array.__array_interface__["data"][0]
    return address


def _await(events: Iterable[torch.cuda.Event | None]) -> None:
    """Let this thread's stream wait for these events."""
    for event in events:
        if event is not None:
            torch.cuda.current_stream().wait_event(event)


TWINS = Twins()
