"""The free-running gate: neither actors nor the learner ever wait, as in Ape-X.

Every item enters the store when it arrives, and its actor is given another slot for it. A batch may
be taken whenever the learner asks, once the store holds the warm-up. How often an item is used, and
how old the policy behind it is, depend on the speeds of both sides; both are counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from tianji.balance.turns import Turns
from tianji.buffer.interface import Entry, Gate
from tianji.buffer.lanes import Lanes
from tianji.channels.gauges import Gauge
from tianji.channels.interface import Receiver
from tianji.channels.orders import BufferRows
from tianji.types import Stamp


@dataclass(frozen=True, slots=True)
class FreePlan:
    """FreePlan(first_unrolls=34, slots_per_actor=64)"""

    first_unrolls: int
    """Unrolls in the store before the first batch: the warm-up, and one version's."""
    slots_per_actor: int
    """Slots that an actor holds: one that it writes, and others for the time in which the learner's
    process receives nothing because it makes an update or saves a checkpoint."""


class FreeRunning(Gate):
    """Lets items in as they come, and batches out as they are asked for."""

    def __init__(self, plan: FreePlan, receiver: Receiver, rows: BufferRows) -> None:
        num_actors = receiver.num_lanes
        self.lanes = Lanes(receiver, Turns(num_actors, is_serial=True), rows)
        self.version = 0
        self._first_unrolls = self._missing = plan.first_unrolls
        """`_missing`: unrolls that the store must still get before the first batch."""
        self._entered: list[Entry] = []
        """What has entered the store since the last batch."""
        rows.gauges[Gauge.ACTIVE] = num_actors
        for actor in range(num_actors):
            self.lanes.give(actor, plan.slots_per_actor)

    def starts_with(self, num_held: int) -> None:
        self._missing = self._first_unrolls - num_held

    def arrived(self, stamp: Stamp, slot: int) -> bool:
        self._entered.append(Entry(stamp, None, self.version))
        self._missing -= 1
        self.lanes.give(stamp.actor)
        return True

    def lost(self, actor: int) -> None:
        """The successor is owed what the dead actor held."""
        if held := self.lanes.lost(actor):
            self.lanes.give(actor, held)

    def tick(self) -> bool:
        self.lanes.deliver()
        return False

    def may_take(self) -> bool:
        return self._missing <= 0

    def entering(self) -> list[Entry] | None:
        entered, self._entered = self._entered, []
        return entered

    def finish(self, version: int) -> None:
        self.version = version
        self.lanes.deliver()

    def continue_at(self, version: int, is_first: bool) -> None:
        self.version = version
