"""Twins of host memory on a GPU: what was uploaded once is found there again.

A twin mirrors one field of all slots. The actor's inference uploads each row into it as the
environments make them, and the learner in the same process then reads the twin of the slot.
"""

from __future__ import annotations

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
    ready: dict[int, torch.cuda.Event] = field(default_factory=dict)
    """When the rows of each slot have arrived."""
    num_rows: dict[int, int] = field(default_factory=dict)
    """How many rows of a slot have been uploaded, where that is not all."""

    def slot_of(self, part: Array) -> int | None:
        """Return the slot that this array is the whole of."""
        slot, rest = divmod(part.ctypes.data - self.address, self.stride)
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
        twin = Twin(slots.ctypes.data, slots.strides[0], tensor)
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
        torch.cuda.current_stream().wait_event(twin.ready[slot])
        begin = twin.num_rows.get(slot, len(part))
        if begin < len(part):
            twin.tensor[slot, begin:].copy_(torch.from_numpy(part[begin:]), non_blocking=True)
        return twin.tensor[slot]


TWINS = Twins()
