"""The Stream in shared memory: one segment of slots, one lane per actor.

A lane is two rings of indices with a semaphore each: `granted` (buffer to actor) and `sent` (actor
to buffer). Only indices move; the bytes of an unroll are written once and read where they lie. The
semaphores count what is in the rings, wake the other side's bell, and order the memory.

Either end may die at any instruction:

- A sender that dies leaves at most one slot half written. It never sent it, so nobody reads it; the
  receiver takes back what the lane held (reset_lane).
- A receiver that dies forgets who holds which slot. The new one raises every lane's epoch; entries
  of an older epoch are ignored, and the slot that a sender may still be writing stays out of use
  until the sender has acknowledged the new epoch.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from tianji.channels.interface import Grant
from tianji.channels.layout import Layout
from tianji.channels.memory import SEMAPHORE_BYTES, Bell, Segment, Semaphore, fence
from tianji.errors import ChannelError
from tianji.types import Stamp, Unroll

_EPOCH, _ACK, _CURRENT, _LAYOUT = range(4)
_HEAD_WORDS = 8
_GRANT_WORDS = 3  # slot, round, epoch
_SENT_WORDS = 2  # slot, epoch


def lane_bytes(num_slots: int) -> int:
    """Memory of one lane whose rings can hold every slot there is."""
    ring = 8 * num_slots * (_GRANT_WORDS + _SENT_WORDS)
    return -(-(8 * _HEAD_WORDS + 2 * SEMAPHORE_BYTES + ring) // 64) * 64


class _Lane:
    """The shared words of one lane, the same for both ends."""

    def __init__(self, segment: Segment, index: int, num_slots: int) -> None:
        base = index * lane_bytes(num_slots)
        rings = base + 8 * _HEAD_WORDS + 2 * SEMAPHORE_BYTES
        self.head = segment.words(base, _HEAD_WORDS)
        self.granted = Semaphore(segment, base + 8 * _HEAD_WORDS)
        self.sent = Semaphore(segment, base + 8 * _HEAD_WORDS + SEMAPHORE_BYTES)
        self.granted_ring = segment.words(rings, num_slots * _GRANT_WORDS)
        self.sent_ring = segment.words(
            rings + 8 * num_slots * _GRANT_WORDS, num_slots * _SENT_WORDS
        )


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
        lanes = Segment.create("lanes", lane_bytes(num_slots) * num_lanes)
        memory = StreamMemory(slots, lanes, layout, num_slots, num_lanes)
        for index in range(num_lanes):
            lane = memory.lane(index)
            lane.granted.initialise()
            lane.sent.initialise()
            lane.head[_CURRENT] = -1
            lane.head[_LAYOUT] = layout.fingerprint()
        return memory

    def lane(self, index: int) -> _Lane:
        return _Lane(self.lanes, index, self.num_slots)


class ShmSender:
    """An actor's end of its lane."""

    def __init__(self, memory: StreamMemory, index: int, receiver_bell: Bell) -> None:
        self._lane = memory.lane(index)
        if self._lane.head[_LAYOUT] != memory.layout.fingerprint():
            raise ChannelError(
                f"Actor {index} lays out its unrolls in another way than the buffer does. Both "
                "ends must be started from the same plan."
            )
        self._num_slots = memory.num_slots
        self._arrays = memory.layout.arrays(memory.slots.memory, memory.num_slots)
        self._stamps = memory.layout.stamps(memory.slots.memory, memory.num_slots)
        self._bell = receiver_bell
        self.attach()

    def attach(self) -> None:
        head = self._lane.head
        self._epoch = head[_EPOCH]
        self._num_reserved = self._num_sent = 0
        head[_CURRENT] = -1
        fence()  # from here on no slot of an older epoch is touched
        head[_ACK] = self._epoch
        self._bell.ring()

    def is_stale(self) -> bool:
        return self._lane.head[_EPOCH] != self._epoch

    def reserve(self) -> Grant | None:
        lane = self._lane
        if not lane.granted.try_wait():
            return None
        at = self._num_reserved % self._num_slots * _GRANT_WORDS
        slot, round_number, epoch = lane.granted_ring[at : at + _GRANT_WORDS]
        lane.head[_CURRENT] = slot
        fence()  # the receiver either sees _CURRENT, or we see its new epoch
        if epoch != self._epoch or lane.head[_EPOCH] != self._epoch:
            return None
        self._num_reserved += 1
        return Grant(slot, round_number)

    def unroll(self, slot: int) -> Unroll:
        return {name: array[slot] for name, array in self._arrays.items()}

    def send(self, slot: int, stamp: Stamp) -> None:
        lane = self._lane
        if lane.head[_EPOCH] != self._epoch:
            return  # void: the receiver that granted this slot is gone; is_stale() tells the actor
        self._stamps[slot] = stamp
        at = self._num_sent % self._num_slots * _SENT_WORDS
        lane.sent_ring[at] = slot
        lane.sent_ring[at + 1] = self._epoch
        self._num_sent += 1
        lane.sent.post()
        lane.head[_CURRENT] = -1
        self._bell.ring()


class ShmReceiver:
    """The buffer's end of all lanes, and the owner of the slots."""

    def __init__(self, memory: StreamMemory, sender_bells: list[Bell]) -> None:
        self.num_lanes = memory.num_lanes
        self.arrays = memory.layout.arrays(memory.slots.memory, memory.num_slots)
        self._stamps = memory.layout.stamps(memory.slots.memory, memory.num_slots)
        self._num_slots = memory.num_slots
        self._bells = sender_bells
        self._lanes = [memory.lane(index) for index in range(memory.num_lanes)]
        self._granted = [0] * self.num_lanes
        self._taken = [0] * self.num_lanes
        self._outstanding: list[set[int]] = [set() for _ in self._lanes]
        self._held: list[int] = [-1] * self.num_lanes
        self._next_lane = 0
        self._free: deque[int] = deque()
        for index in range(self.num_lanes):
            self._raise_epoch(index)
        held = set(self._held)
        self._free.extend(slot for slot in range(memory.num_slots) if slot not in held)

    def _raise_epoch(self, index: int) -> None:
        """Make everything on the lane void, and note the slot its sender may be writing now."""
        lane = self._lanes[index]
        lane.head[_EPOCH] += 1
        fence()
        lane.granted.drain()
        lane.sent.drain()
        self._granted[index] = self._taken[index] = 0
        self._held[index] = lane.head[_CURRENT]
        self._bells[index].ring()

    def is_attached(self, lane: int) -> bool:
        head = self._lanes[lane].head
        if head[_ACK] != head[_EPOCH]:
            return False
        if self._held[lane] >= 0:
            self._free.append(self._held[lane])
            self._held[lane] = -1
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
        lane = self._lanes[index]
        while lane.sent.try_wait():
            at = self._taken[index] % self._num_slots * _SENT_WORDS
            slot, epoch = lane.sent_ring[at : at + _SENT_WORDS]
            if epoch == lane.head[_EPOCH]:
                self._taken[index] += 1
                self._outstanding[index].discard(slot)
                return slot
        return None

    def stamp(self, slot: int) -> Stamp:
        return Stamp(*self._stamps[slot].tolist())

    def grant(self, lane: int, round_number: int) -> bool:
        if not self._free or not self.is_attached(lane):
            return False
        slot, words = self._free.popleft(), self._lanes[lane]
        at = self._granted[lane] % self._num_slots * _GRANT_WORDS
        words.granted_ring[at] = slot
        words.granted_ring[at + 1] = round_number
        words.granted_ring[at + 2] = words.head[_EPOCH]
        self._granted[lane] += 1
        self._outstanding[lane].add(slot)
        words.granted.post()
        self._bells[lane].ring()
        return True

    def claim(self) -> int:
        return self._free.popleft()

    def release(self, slot: int) -> None:
        self._free.append(slot)

    def reset_lane(self, lane: int) -> list[int]:
        arrived = []
        while (slot := self._take_from(lane)) is not None:
            arrived.append(slot)
        self._raise_epoch(lane)
        back = self._outstanding[lane] - {self._held[lane]}
        if self._held[lane] not in self._outstanding[lane]:
            self._held[lane] = -1
        self._free.extend(sorted(back))
        self._outstanding[lane] = set()
        fence()  # whoever is told that the lane was reset sees its new epoch
        return arrived
