"""Notes in shared memory on the slots that a receiver keeps, for the receiver that takes over.

A note is a number and the stamp of the unroll. The writer may die at any instruction: it writes the
stamp first and then the number, a single word, which makes the note count; 0 ends it.
"""

from __future__ import annotations

import struct

from tianji.channels.memory import Segment
from tianji.types import Stamp

_STAMP = struct.Struct(f"@{len(Stamp._fields)}q")
_WORDS = 1 + len(Stamp._fields)


def note_bytes(num_slots: int) -> int:
    """Return the memory that notes on this many slots take."""
    return 8 * _WORDS * num_slots


class Notes:
    """One note per slot; numbers grow in the order in which slots were kept."""

    def __init__(self, segment: Segment, offset: int, num_slots: int) -> None:
        self._memory = segment.memory[offset : offset + note_bytes(num_slots)]
        self._words = segment.words(offset, _WORDS * num_slots)
        numbers = self._words[::_WORDS].tolist()
        self._last = max(numbers)
        noted = sorted((number, slot) for slot, number in enumerate(numbers) if number)
        self.found = tuple(slot for _, slot in noted)
        """Slots that were kept when these notes were opened, the oldest first."""

    def add(self, slot: int, stamp: Stamp) -> None:
        """Note that this slot is kept from now on; it must not be noted yet."""
        first = slot * _WORDS
        _STAMP.pack_into(self._memory, 8 * (first + 1), *stamp)
        self._last += 1
        self._words[first] = self._last

    def remove(self, slot: int) -> None:
        self._words[slot * _WORDS] = 0

    def stamp(self, slot: int) -> Stamp:
        return Stamp(*_STAMP.unpack_from(self._memory, 8 * (slot * _WORDS + 1)))
