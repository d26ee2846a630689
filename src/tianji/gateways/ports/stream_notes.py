"""What the two ends of a forwarded stream tell each other.

    actors' host                            buffer's host
    Came(actor, life)                 ->    a sender joins the lane
                                      <-    Renewed(actor, life, generation): older grants are void
                                      <-    Granted(actor, life, round, num_rounds)
    Item(actor, generation, stamp)    ->    the unroll, if the lane is still of this generation
    Lost(actor, life, resets)         ->    the sender has died, after all its items

A life is one sender at the actors' host; the generation is that of the lane at the buffer's host.
"""

from __future__ import annotations

import struct
from typing import NamedTuple, TypeAlias

from tianji.channels.layout import STANDARD_FIELDS, Layout
from tianji.gateways.refusals import Refusal, Refused
from tianji.types import Stamp


class Came(NamedTuple):
    """An actor is there."""

    actor: int
    life: int


class Renewed(NamedTuple):
    """The lane begins anew; grants and items of before are void."""

    actor: int
    life: int
    generation: int


class Granted(NamedTuple):
    """The actor may make unrolls, for this round and those after it."""

    actor: int
    life: int
    round: int
    num_rounds: int


class Lost(NamedTuple):
    """The actor has died; so many processes have run it before."""

    actor: int
    life: int
    resets: int


class Item(NamedTuple):
    """An unroll; its slot, or a part of it, is the body of the message."""

    actor: int
    generation: int
    stamp: Stamp


class SlotPart(NamedTuple):
    """What crosses of each slot: from its first byte to the end. Both ends name it in their wiring,
    so that they connect only if they agree."""

    layout: Layout
    first: int

    @staticmethod
    def all_of(layout: Layout) -> SlotPart:
        return SlotPart(layout, 0)

    @staticmethod
    def token(layout: Layout) -> SlotPart:
        """Leave out observations and the algorithm's fields: where actors compute gradients, the
        buffer counts steps and episodes, and nobody else reads the unroll."""
        return SlotPart(layout, layout.offsets()[STANDARD_FIELDS[0].name])

    @property
    def wiring(self) -> str:
        return f"{self.layout.fingerprint()} {self.first}"

    @property
    def nbytes(self) -> int:
        return self.layout.slot_bytes - self.first

    def of(self, slot: int) -> slice:
        """Return the place of this part of a slot in the memory of all slots."""
        begin = slot * self.layout.slot_bytes
        return slice(begin + self.first, begin + self.layout.slot_bytes)


StreamNote: TypeAlias = Came | Renewed | Granted | Lost | Item
_SHORT: dict[int, type[Came] | type[Renewed] | type[Granted] | type[Lost]] = {
    1: Came,
    2: Renewed,
    3: Granted,
    4: Lost,
}
_KINDS: dict[type[StreamNote], int] = {**{kind: number for number, kind in _SHORT.items()}, Item: 5}
_ITEM = struct.Struct(f"!B2q{len(Stamp._fields)}q")
_STRUCTS = {number: struct.Struct(f"!B{len(kind._fields)}q") for number, kind in _SHORT.items()}
ITEM_NOTE_BYTES = _ITEM.size


def pack(note: StreamNote) -> bytes:
    kind = _KINDS[type(note)]
    if isinstance(note, Item):
        return _ITEM.pack(kind, note.actor, note.generation, *note.stamp)
    return _STRUCTS[kind].pack(kind, *note)


def unpack(note: bytes) -> StreamNote:
    kind = note[0] if note else 0
    try:
        if kind == _KINDS[Item]:
            _, actor, generation, *stamp = _ITEM.unpack(note)
            return Item(actor, generation, Stamp._make(stamp))
        return _SHORT[kind]._make(_STRUCTS[kind].unpack(note)[1:])
    except (KeyError, struct.error):
        raise Refused(Refusal.GARBAGE) from None
