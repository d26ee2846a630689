"""Bounded queues between actors and learner, as in IMPALA: the alternatives to pacing.

An actor may start an item whenever a place in the queue is free for it, and the learner takes a
batch whenever enough items are there. What happens when the queue is full makes two gates:

    BlockingQueue   actors wait for a place: back-pressure, nothing is lost
    DroppingQueue   the oldest item is given up and counted: actors do not wait

Neither looks at the lag, which follows from the size of the queue and the speeds of both sides; it
is counted all the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tianji.balance.turns import Turns
from tianji.buffer.interface import Entry, Gate, by_age
from tianji.buffer.lanes import Lanes
from tianji.channels.gauges import Gauge
from tianji.channels.interface import Receiver
from tianji.channels.orders import BufferRows
from tianji.types import Stamp


@dataclass(frozen=True, slots=True)
class QueuePlan:
    """QueuePlan(unrolls_per_version=2, queue_size=4)"""

    unrolls_per_version: int
    queue_size: int
    """Most unrolls in the queue. With BlockingQueue, those in work have their place in it."""
    slots_per_actor: int = 0
    """Slots that an actor holds beside the queue, with DroppingQueue."""


class _Arrivals:
    """Items that have arrived and wait for a batch."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, stamp: Stamp, slot: int) -> None:
        self._entries.append(Entry(stamp, slot))

    def oldest(self, count: int) -> list[Entry]:
        """Remove and return the oldest items."""
        self._entries.sort(key=by_age)
        found, self._entries = self._entries[:count], self._entries[count:]
        return found

    def stamps(self) -> Iterable[Stamp]:
        return (entry.stamp for entry in self._entries)


class BlockingQueue(Gate):
    """Lets an item be started for each free place. The places are given to actors in advance, to
    those with the fewest first, because the buffer may share a thread with the learner."""

    def __init__(self, plan: QueuePlan, receiver: Receiver, rows: BufferRows) -> None:
        assert plan.queue_size >= plan.unrolls_per_version, "the queue never holds a whole batch"
        num_actors = receiver.num_lanes
        self.lanes = Lanes(receiver, Turns(num_actors, is_serial=False), rows)
        self.version = 0
        self._plan = plan
        self._arrivals = _Arrivals()
        rows.gauges[Gauge.ACTIVE] = num_actors

    def arrived(self, stamp: Stamp, slot: int) -> bool:
        self._arrivals.add(stamp, slot)
        return False

    def lost(self, actor: int) -> None:
        """The places of the dead actor go to the others, until its successor is there."""
        self.lanes.lost(actor)

    def tick(self) -> bool:
        if self.lanes.has_changed:
            self._deal()
        return False

    def _deal(self) -> None:
        lanes, num_waiting = self.lanes, len(self._arrivals)
        lanes.has_changed = False
        lanes.deal(self._plan.queue_size - num_waiting - lanes.turns.num_outstanding)
        lanes.deliver()
        lanes.receiver.expect(max(1, self._plan.unrolls_per_version - num_waiting))

    def may_take(self) -> bool:
        return len(self._arrivals) >= self._plan.unrolls_per_version

    def entering(self) -> list[Entry] | None:
        entering = self._arrivals.oldest(self._plan.unrolls_per_version)
        self._deal()  # the places of this batch are free
        return entering

    def finish(self, version: int) -> None:
        self.version = version
        self._deal()

    def continue_at(self, version: int, is_first: bool) -> None:
        self.version = version

    def waiting(self) -> Iterable[Stamp]:
        return self._arrivals.stamps()


class DroppingQueue(Gate):
    """Gives an actor another slot for each item that arrives, and drops the oldest of the queue
    where that makes too many."""

    def __init__(self, plan: QueuePlan, receiver: Receiver, rows: BufferRows) -> None:
        assert plan.queue_size >= plan.unrolls_per_version, "the queue never holds a whole batch"
        num_actors = receiver.num_lanes
        self.lanes = Lanes(receiver, Turns(num_actors, is_serial=True), rows)
        self.version = 0
        self._plan = plan
        self._arrivals = _Arrivals()
        rows.gauges[Gauge.ACTIVE] = num_actors
        for actor in range(num_actors):
            self.lanes.give(actor, plan.slots_per_actor)

    def arrived(self, stamp: Stamp, slot: int) -> bool:
        self._arrivals.add(stamp, slot)
        self.lanes.give(stamp.actor)
        return False

    def lost(self, actor: int) -> None:
        """The successor is owed what the dead actor held."""
        if held := self.lanes.lost(actor):
            self.lanes.give(actor, held)

    def tick(self) -> bool:
        self._drop_oldest()
        self.lanes.deliver()
        return False

    def _drop_oldest(self) -> None:
        """Drop what is too much, when all that has arrived is here: lanes are read one by one, so
        that the oldest item need not arrive first."""
        excess = len(self._arrivals) - self._plan.queue_size
        if excess <= 0:
            return
        for stamp, slot, _ in self._arrivals.oldest(excess):
            assert slot is not None, "an item of the queue is in its slot"
            self.lanes.discard(stamp, slot)

    def may_take(self) -> bool:
        return len(self._arrivals) >= self._plan.unrolls_per_version

    def entering(self) -> list[Entry] | None:
        self._drop_oldest()
        return self._arrivals.oldest(self._plan.unrolls_per_version)

    def finish(self, version: int) -> None:
        self.version = version
        self.lanes.deliver()

    def continue_at(self, version: int, is_first: bool) -> None:
        self.version = version

    def waiting(self) -> Iterable[Stamp]:
        return self._arrivals.stamps()
