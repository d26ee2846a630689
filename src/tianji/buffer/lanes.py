"""Lanes: the actors' ends of the stream. Which actors are there, what they hold, what they get.

Nothing here looks at all actors when an item arrives: there may be thousands.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from tianji.balance.turns import Turns
from tianji.buffer.orders import BufferOrders
from tianji.channels.gauges import Gauge
from tianji.channels.interface import Receiver
from tianji.channels.orders import BufferRows, Order
from tianji.types import Stamp


class Lanes:
    """Counts what every actor holds, and delivers slots when both slot and actor are there."""

    def __init__(
        self,
        receiver: Receiver,
        turns: Turns,
        rows: BufferRows,
    ) -> None:
        """turns: counts what actors hold, and says which of them comes next."""
        self.receiver = receiver
        self.turns = turns
        self.presence = Presence(receiver, rows)
        self.losses = Losses(rows)
        self._gauges = rows.gauges
        self._owed: dict[int, int] = {}
        """Given and not yet delivered, by actor: it is still starting, or no slot was free."""
        self.has_changed = True
        """Something has arrived, or an actor has come or gone, since this was set to False."""

    def deal(self, budget: int) -> None:
        """Let this many more items be started, as far as there are actors for them."""
        for actor in self.turns.deal(budget):
            self._owe(actor, 1)

    def give(self, actor: int, count: int = 1) -> None:
        """Let this actor start so many more items."""
        self.turns.give(actor, count)
        self._owe(actor, count)

    def _owe(self, actor: int, count: int) -> None:
        self._owed[actor] = self._owed.get(actor, 0) + count

    def deliver(self, idle: Collection[int] = ()) -> None:
        """Grant what is owed. idle: actors that have to wait for it."""
        for actor, count in tuple(self._owed.items()):
            # What is owed to an absent actor is kept for it: serial training must not depend on
            # which actor comes first.
            if actor not in self.presence.absent and actor not in idle:
                self._deliver(actor, count)

    def _deliver(self, actor: int, count: int) -> None:
        left = count - self.receiver.grant(actor, self.turns.rounds[actor] - count, count)
        if left:
            self._owed[actor] = left
        else:
            del self._owed[actor]

    def accept(self, slot: int) -> Stamp | None:
        """Return the stamp of what arrived in this slot. None: the actor holds no grant for that
        round, so its lane was declared lost and the round is made again; the item is discarded."""
        stamp = self.receiver.stamp(slot)
        self.has_changed = True
        delivered = self.turns.rounds[stamp.actor] - self._owed.get(stamp.actor, 0)
        if stamp.round >= delivered or not self.turns.arrived(stamp.actor, stamp.round):
            self.discard(stamp, slot)
            return None
        self._gauges[Gauge.ITEMS] += 1
        self._gauges[Gauge.RECEIVED_STEPS] += stamp.env_steps
        return stamp

    def discard(self, stamp: Stamp, slot: int) -> None:
        self.receiver.release(slot)
        self.losses.lose(stamp)

    def round_in_work(self, actor: int) -> int | None:
        """Return the round that the actor is on; None when it holds no grant."""
        held = self.turns.outstanding[actor]
        return self.turns.rounds[actor] - held if held else None

    def lost(self, actor: int) -> int:
        """The actor's lane was reset; return how many items it had been given."""
        held = self.turns.outstanding[actor]
        self._owed.pop(actor, None)
        self.turns.lost(actor)
        self.has_changed = True
        return held

    def came(self, actor: int) -> None:
        self.turns.back(actor)
        self.has_changed = True

    def gave_up(self, actor: int) -> None:
        self._owed.pop(actor, None)
        self.turns.gave_up(actor)
        self.has_changed = True

    def rounds(self) -> list[int]:
        """Return how many items of each actor have arrived, in the whole run."""
        turns = self.turns
        return [given - held for given, held in zip(turns.rounds, turns.outstanding, strict=True)]

    def load(self, rounds: Sequence[int]) -> None:
        """Continue after these rounds; nothing was delivered yet."""
        held = self.turns.outstanding
        self.turns.load([int(made) + owed for made, owed in zip(rounds, held, strict=True)])
        self.has_changed = True


class Changes(NamedTuple):
    """Actors whose presence has changed since the last look."""

    come: list[int]
    given_up: list[int]


class Presence:
    """The actors that are attached, that were replaced, and that will not come back. It looks only
    at missing actors: there may be thousands in all."""

    def __init__(
        self,
        receiver: Receiver,
        rows: BufferRows,
    ) -> None:
        self._receiver = receiver
        self._supervision = rows.supervision
        self._of_actors = [actor.supervision for actor in rows.actors]
        self._orders = BufferOrders(rows.actors)
        self._resets_done = sum(map(self._orders.resets_done, range(len(rows.actors))))
        self.absent = set(range(receiver.num_lanes))
        """Actors not attached at the last look."""

    def changes(self) -> Changes:
        changes = Changes([], [])
        for actor in tuple(self.absent):
            if self._of_actors[actor][Order.GIVEN_UP]:
                changes.given_up.append(actor)
            elif self._receiver.is_attached(actor):
                changes.come.append(actor)
        self.absent.difference_update(changes.come, changes.given_up)
        return changes

    def replaced(self) -> list[tuple[int, int]]:
        """Return the actors that were replaced since the last look, and how often in all. The
        supervisor tells each actor its own count, and the buffer the sum of all."""
        if self._supervision[Order.RESETS] == self._resets_done:
            return []
        counts = [row[Order.RESETS] for row in self._of_actors]
        return [
            (actor, count)
            for actor, count in enumerate(counts)
            if count != self._orders.resets_done(actor)
        ]

    def lost(self, actor: int, resets: int) -> None:
        """Note that the actor's lane was reset, after this many replacements."""
        self.absent.add(actor)
        self._resets_done += resets - self._orders.resets_done(actor)
        self._orders.reset_done(actor, resets)  # last: the new actor waits for it


class Losses:
    """Counts items that reached no version in the whole run, restarts included. An actor counts
    what it drops in its own gauges; what was sent and is lost is counted here."""

    def __init__(self, rows: BufferRows) -> None:
        self._row = rows.gauges
        self._rows = (rows.gauges, *(actor.gauges for actor in rows.actors))
        self._items_before = self._steps_before = 0

    def lose(self, stamp: Stamp) -> None:
        self._row[Gauge.DISCARDED] += 1
        self._row[Gauge.DISCARDED_STEPS] += stamp.env_steps

    @property
    def items(self) -> int:
        return self._items_before + self._now(Gauge.DISCARDED)

    @property
    def steps(self) -> int:
        return self._steps_before + self._now(Gauge.DISCARDED_STEPS)

    def _now(self, gauge: Gauge) -> int:
        return sum(row[gauge] for row in self._rows)

    def state(self) -> dict[str, Any]:
        return {"discarded": self.items, "discarded_steps": self.steps}

    def load_state(self, state: dict[str, Any]) -> None:
        # A learner that is restarted finds the gauges as they were; they count only once.
        self._items_before = int(state["discarded"]) - self._now(Gauge.DISCARDED)
        steps = int(state.get("discarded_steps", 0))  # checkpoints of version 0.1 have none
        self._steps_before = steps - self._now(Gauge.DISCARDED_STEPS)
