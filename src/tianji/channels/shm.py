"""The Stream in shared memory: one segment of slots, one lane per actor.

A lane is two rings of indices, `granted` (buffer to actor) and `sent` (actor to buffer), each with
a count that only one end writes. Only indices and stamps move; the bytes of an unroll are written
once and read in place. An end writes an entry, then (in order) the count; the other end reads the
count, then a fence, then every entry it covers: one fence for all that has arrived.

Either end may die at any instruction:

- A sender that dies leaves at most one slot half written. It never counted the slot as sent, so it
  is not read; the receiver takes back the slots of the lane (reset_lane).
- When a receiver dies, the record of which lane holds which slot is lost. The new receiver raises
  every lane's generation. Items sent before a sender has acknowledged the new generation are void,
  and the slot that it may still be writing stays out of use until then.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain

from tianji.channels.interface import Grant
from tianji.channels.layout import Layout
from tianji.channels.memory import IS_ORDERED, Bell, Seat, Segment, new_fence
from tianji.errors import ChannelError
from tianji.types import Stamp, Unroll

# Words of a lane, in three cache lines: what hardly ever changes, what the receiver writes, and
# what the sender writes.
_LAYOUT, _GENERATION = 0, 1
_GRANTED, _WAKE_AT, TAKEN = 8, 9, 10  # TAKEN: only where items are confirmed (confirmed.py)
_ACK, _SENT, _SKIPPED = 16, 17, 18
_HEAD_WORDS = 24
_GRANT = struct.Struct("@2q")  # of the granted ring: slot, round
_ENTRY = struct.Struct(f"@q{len(Stamp._fields)}q")  # of the sent ring: slot, stamp; a cache line
# Named tuples in hot paths: calling their class takes three times as long.
_make_grant: Callable[[tuple[int, ...]], Grant] = partial(tuple.__new__, Grant)
_make_stamp: Callable[[tuple[int, ...]], Stamp] = partial(tuple.__new__, Stamp)


def lane_bytes(num_slots: int) -> int:
    """Return the memory of one lane whose rings can hold all slots."""
    rings = num_slots * (_GRANT.size + _ENTRY.size)
    return -(-(8 * _HEAD_WORDS + rings) // 64) * 64


class Ring:
    """Entries of one kind, written and read by position; positions only grow."""

    def __init__(self, entry: struct.Struct, memory: memoryview) -> None:
        self.memory = memory
        self.length = len(memory) // entry.size
        self._nbytes = entry.size
        self._unpack = entry.iter_unpack

    def read(self, begin: int, end: int) -> Iterator[tuple[int, ...]]:
        """Return the entries from position `begin` up to `end`."""
        first, last = begin % self.length, end % self.length
        if first < last or begin == end:
            return self._between(first, last)
        return chain(self._between(first, self.length), self._between(0, last))

    def _between(self, first: int, last: int) -> Iterator[tuple[int, ...]]:
        return self._unpack(self.memory[first * self._nbytes : last * self._nbytes])


class _Lane:
    """The shared words of one lane, the same for both ends."""

    def __init__(self, segment: Segment, index: int, num_slots: int) -> None:
        base = index * lane_bytes(num_slots)
        sent = base + 8 * _HEAD_WORDS
        granted = sent + num_slots * _ENTRY.size
        self.head = segment.words(base, _HEAD_WORDS)
        self.sent = Ring(_ENTRY, segment.memory[sent:granted])
        self.granted = Ring(_GRANT, segment.memory[granted : granted + num_slots * _GRANT.size])


@dataclass(frozen=True, slots=True)
class StreamMemory:
    """The two segments behind one stream, and its shape."""

    slots: Segment
    lanes: Segment
    layout: Layout
    num_slots: int
    num_lanes: int

    @staticmethod
    def create(layout: Layout, num_slots: int, num_lanes: int) -> StreamMemory:
        slots = Segment.create("slots", layout.slot_bytes * num_slots)
        try:
            lanes = Segment.create("lanes", lane_bytes(num_slots) * num_lanes)
        except ChannelError:
            slots.close()
            raise
        memory = StreamMemory(slots, lanes, layout, num_slots, num_lanes)
        for index in range(num_lanes):
            memory.lane(index).head[_LAYOUT] = layout.fingerprint()
        return memory

    def lane(self, index: int) -> _Lane:
        return _Lane(self.lanes, index, self.num_slots)

    def check(self) -> None:
        """Raise ChannelError unless this memory has the sizes and the layout of the plan."""
        sizes = self.slots.nbytes, self.lanes.nbytes
        lanes = self.num_lanes * lane_bytes(self.num_slots)
        planned = self.layout.slot_bytes * self.num_slots, lanes
        if sizes != planned:
            raise ChannelError(
                f"This memory ({sizes[0]} bytes of slots, {sizes[1]} of lanes) does not match the "
                f"plan ({planned[0]} and {planned[1]}): it belongs to another run."
            )
        if self.lane(0).head[_LAYOUT] != self.layout.fingerprint():
            raise ChannelError(
                "The layout of unrolls at this end differs from that of the stream. Both ends must "
                "be started from the same plan."
            )


class ShmSender:
    """An actor's end of its lane."""

    def __init__(self, memory: StreamMemory, index: int, receiver_bell: Bell) -> None:
        memory.check()
        self._seat = Seat(memory.lanes, 1 + index, f"a sender on lane {index}")
        lane = memory.lane(index)
        self._head, self._granted, self._sent = lane.head, lane.granted, lane.sent
        self._generation = -1
        self._num_sent = self._num_granted = self._num_announced = 0
        self._grants: deque[Grant] = deque()
        self.arrays = memory.layout.arrays(memory.slots.memory, memory.num_slots)
        self._bell = receiver_bell
        self._fence = new_fence()
        self.attach()

    def attach(self) -> None:
        """Join the current generation, unless an earlier sender has joined it.

        That sender may have died since; this one must not use the slots granted to it.
        """
        head = self._head
        generation = head[_GENERATION]
        if generation == head[_ACK]:
            return
        self._fence()  # slots of an older generation are not touched after it; its grants are seen
        self._generation, self._num_granted = generation, head[_GRANTED]
        self._num_sent = self._num_announced = head[_SENT]
        self._grants.clear()  # older ones are void
        head[_SKIPPED] = self._num_granted - self._num_sent
        self._fence()
        head[_ACK] = generation
        self._bell.ring()

    def is_stale(self) -> bool:
        return self._head[_GENERATION] != self._generation

    def is_waiting(self) -> bool:
        return False

    def reserve(self) -> Grant | None:
        if self._head[_GENERATION] != self._generation:
            return None
        if not self._grants and not self._read_grants():
            return None
        return self._grants.popleft()

    def _read_grants(self) -> bool:
        before, self._num_granted = self._num_granted, self._head[_GRANTED]
        if before == self._num_granted:
            if (
                self._num_announced != self._num_sent
            ):  # no more grants: let the receiver see what was sent
                self._num_announced = self._num_sent
                self._bell.ring()
            return False
        self._fence()  # the count was read before the entries it covers
        self._grants.extend(map(_make_grant, self._granted.read(before, self._num_granted)))
        return True

    def unroll(self, slot: int) -> Unroll:
        return {name: array[slot] for name, array in self.arrays.items()}

    def send(self, slot: int, stamp: Stamp) -> None:
        """Hand over a slot. An item sent to a receiver that is gone is void, because this lane is
        not yet attached to the next one; is_stale() tells the actor."""
        at = self._num_sent % self._sent.length * _ENTRY.size
        # One by one, not `*stamp`: for a named tuple that would take twice as long.
        actor, round_number, oldest, newest, env_steps, started_ns, finished_ns = stamp
        _ENTRY.pack_into(
            self._sent.memory, at,
            slot, actor, round_number, oldest, newest, env_steps, started_ns, finished_ns,
        )  # fmt: skip
        self._num_sent = sent = self._num_sent + 1
        if not IS_ORDERED:
            self._fence()  # everything that was written is seen before the count
        self._head[_SENT] = sent
        self._fence()  # the count is seen before we look whom to wake and read the generation
        if sent >= self._head[_WAKE_AT]:
            self._num_announced = sent
            self._bell.wake()


class AnnouncingSender(ShmSender):
    """Rings for each item that is begun as well, for a gateway that tells a buffer elsewhere."""

    def reserve(self) -> Grant | None:
        grant = super().reserve()
        if grant is not None:
            self._bell.ring()
        return grant


class ShmReceiver:
    """The buffer's end of all lanes, and the owner of the slots."""

    def __init__(self, memory: StreamMemory, sender_bells: list[Bell]) -> None:
        memory.check()
        self._seat = Seat(memory.lanes, 0, "a receiver of this stream")
        self.num_lanes = memory.num_lanes
        self.arrays = memory.layout.arrays(memory.slots.memory, memory.num_slots)
        self._bells = sender_bells
        self._lanes = [memory.lane(index) for index in range(memory.num_lanes)]
        self._fence = new_fence()
        self._is_attached = [False] * self.num_lanes
        self._granted = [lane.head[_GRANTED] for lane in self._lanes]
        self._arrived: list[deque[tuple[int, ...]]] = [deque() for _ in self._lanes]
        """Entries that were read and not yet taken, by lane."""
        self._num_read = [0] * self.num_lanes
        self._entries: list[tuple[int, ...]] = [()] * memory.num_slots
        """The entry of the sent ring that came with the unroll in each slot."""
        self._held: list[int] = [-1] * self.num_lanes
        self._next_lane = 0
        self._free: list[int] = []
        """Last in, first out: that slot is still in a cache."""
        for index in range(self.num_lanes):
            self._raise_generation(index)
        self._free.extend(slot for slot in range(memory.num_slots) if slot not in self._held)

    def _raise_generation(self, index: int) -> None:
        """Make everything on the lane void, and note the slot that its sender may be writing."""
        head = self._lanes[index].head
        head[_GENERATION] += 1
        self._fence()
        self._is_attached[index] = False
        self._arrived[index].clear()
        head[_WAKE_AT] = 0
        self._held[index] = self._slot_in_work(index)
        self._bells[index].ring()

    def _slot_in_work(self, index: int) -> int:
        """Return the slot that the lane's sender may be writing, -1 if none. The sender uses its
        grants in order. Before it takes the next one, it counts the last as sent and then reads the
        generation. Either this end sees that count, or the sender sees the raised generation."""
        unsent = self._granted_since(index, self._lanes[index].head[_SENT])
        return unsent[0] if unsent else -1

    def _granted_since(self, index: int, num_sent: int) -> list[int]:
        """Return the slots of the grants left when the sender had sent this many."""
        lane = self._lanes[index]
        first, end = num_sent + lane.head[_SKIPPED], lane.head[_GRANTED]
        return [slot for slot, _ in lane.granted.read(first, end)]

    def is_attached(self, lane: int) -> bool:
        if self._is_attached[lane]:
            return True
        head = self._lanes[lane].head
        if head[_ACK] != head[_GENERATION]:
            return False
        self._fence()
        # Items sent so far are of an older generation: nothing was granted since.
        self._num_read[lane] = head[_SENT]
        held, self._held[lane] = self._held[lane], -1
        if held >= 0 and held not in self._held:  # an old entry may name a slot of another lane
            self._free.append(held)
        self._is_attached[lane] = True
        return True

    def take(self) -> int | None:
        for _ in range(self.num_lanes):
            index = self._next_lane
            self._next_lane = (index + 1) % self.num_lanes
            slot = self._take_from(index)
            if slot is not None:
                return slot
        return None

    def _take_from(self, index: int) -> int | None:
        if not self._arrived[index] and not self._read_sent(index):
            return None
        entry = self._arrived[index].popleft()
        slot = entry[0]
        self._entries[slot] = entry
        return slot

    def _read_sent(self, index: int) -> bool:
        lane, before = self._lanes[index], self._num_read[index]
        sent = lane.head[_SENT]
        if before == sent or not self._is_attached[index]:
            return False
        self._fence()  # the count was read before the entries it covers
        self._arrived[index].extend(lane.sent.read(before, sent))
        self._num_read[index] = sent
        return True

    def expect(self, count: int) -> None:
        """Let a lane wake this end when it has delivered its share: of this many items in total, at
        least one lane delivers its share."""
        share = -(-count // self.num_lanes)
        for lane, read in zip(self._lanes, self._num_read, strict=True):
            lane.head[_WAKE_AT] = read + share

    def stamp(self, slot: int) -> Stamp:
        return _make_stamp(self._entries[slot][1:])

    def grant(self, lane: int, round_number: int, count: int = 1) -> int:
        if not (self._is_attached[lane] or self.is_attached(lane)):
            return 0
        words, granted, free = self._lanes[lane], self._granted[lane], self._free
        count = min(count, len(free))
        if count == 0:
            return 0
        ring = words.granted
        for number in range(count):
            at = (granted + number) % ring.length * _GRANT.size
            _GRANT.pack_into(ring.memory, at, free.pop(), round_number + number)
        self._granted[lane] = granted = granted + count
        self._fence()  # the entries are seen before the count
        words.head[_GRANTED] = granted
        self._bells[lane].ring()
        return count

    def wake_senders(self) -> None:
        for bell in self._bells:
            bell.ring()

    def release(self, slot: int) -> None:
        self._free.append(slot)

    def reset_lane(self, lane: int) -> list[int]:
        arrived = []
        while (slot := self._take_from(lane)) is not None:
            arrived.append(slot)
        if self._is_attached[lane]:
            unsent = self._granted_since(lane, self._num_read[lane])
        else:  # a slot held since an earlier reset still belongs to the lane
            unsent = [slot for slot in (self._held[lane],) if slot >= 0]
        self._raise_generation(lane)
        if self._held[lane] not in unsent:  # the entry is old: another lane has its slot by now
            self._held[lane] = -1
        self._free.extend(slot for slot in unsent if slot != self._held[lane])
        self._fence()  # a sender that is told of the reset sees the new generation
        return arrived
