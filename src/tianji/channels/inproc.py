"""The same channels inside one process, for the inline engine: no shared memory, no semaphores."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from tianji.channels.interface import Bytes, Grant
from tianji.channels.layout import Layout
from tianji.types import Stamp, Unroll


class InprocStream:
    """Slots in ordinary memory and a pair of queues per lane: the receiving end."""

    def __init__(self, layout: Layout, num_slots: int, num_lanes: int) -> None:
        memory = np.zeros(layout.slot_bytes * num_slots, np.uint8)
        self.num_lanes = num_lanes
        self.arrays = layout.arrays(memory, num_slots)
        self.stamps: dict[int, Stamp] = {}
        self.granted: list[deque[Grant]] = [deque() for _ in range(num_lanes)]
        self.sent: list[deque[int]] = [deque() for _ in range(num_lanes)]
        self.reserved: list[set[int]] = [set() for _ in range(num_lanes)]
        self.was_reset = [False] * num_lanes
        self._free = list(range(num_slots))
        self.ready: deque[int] = deque()
        """Lanes that something was sent on, in turn: finding one takes as long with thousands."""

    def sender(self, lane: int) -> InprocSender:
        return InprocSender(self, lane)

    def take(self) -> int | None:
        if not self.ready:
            return None
        lane = self.ready.popleft()
        slot = self.sent[lane].popleft()
        if self.sent[lane]:
            self.ready.append(lane)
        return slot

    def stamp(self, slot: int) -> Stamp:
        return self.stamps[slot]

    def expect(self, count: int) -> None:
        """Nobody sleeps here."""

    def wake_senders(self) -> None:
        """Nobody sleeps here."""

    def grant(self, lane: int, round_number: int, count: int = 1) -> int:
        count = min(count, len(self._free))
        for number in range(round_number, round_number + count):
            self.granted[lane].append(Grant(self._free.pop(), number))
        return count

    def is_attached(self, lane: int) -> bool:
        return True

    def release(self, slot: int) -> None:
        self._free.append(slot)

    def reset_lane(self, lane: int) -> list[int]:
        arrived = list(self.sent[lane])
        self.sent[lane].clear()
        if arrived:
            self.ready.remove(lane)
        self._free.extend(grant.slot for grant in self.granted[lane])
        self._free.extend(sorted(self.reserved[lane]))
        self.granted[lane].clear()
        self.reserved[lane].clear()
        self.was_reset[lane] = True
        return arrived


class InprocSender:
    """An actor's end of its lane."""

    def __init__(self, stream: InprocStream, lane: int) -> None:
        self._stream = stream
        self._lane = lane
        self.arrays = stream.arrays

    def is_stale(self) -> bool:
        return self._stream.was_reset[self._lane]

    def is_waiting(self) -> bool:
        return False

    def attach(self) -> None:
        self._stream.was_reset[self._lane] = False

    def reserve(self) -> Grant | None:
        waiting = self._stream.granted[self._lane]
        if not waiting:
            return None
        grant = waiting.popleft()
        self._stream.reserved[self._lane].add(grant.slot)
        return grant

    def unroll(self, slot: int) -> Unroll:
        return {name: array[slot] for name, array in self.arrays.items()}

    def send(self, slot: int, stamp: Stamp) -> None:
        reserved = self._stream.reserved[self._lane]
        if slot not in reserved:
            return  # void: the lane was reset after this slot was reserved
        reserved.discard(slot)
        self._stream.stamps[slot] = stamp
        sent = self._stream.sent[self._lane]
        if not sent:
            self._stream.ready.append(self._lane)
        sent.append(slot)


class InprocBoard:
    """Writer and reader in one."""

    def __init__(self, payload_bytes: int) -> None:
        self._payload: Bytes = np.zeros(payload_bytes, np.uint8)
        self._version = -1

    def post(self, version: int, write: Callable[[Bytes], None]) -> None:
        write(self._payload)
        self._version = version

    def version(self) -> int:
        return self._version

    def latest(self, read: Callable[[Bytes], None]) -> int:
        read(self._payload)
        return self._version
