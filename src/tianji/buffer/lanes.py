"""Lanes: the actors' ends of the stream. Which actors are there, what they hold, what they get.

Nothing here looks at all actors when an item arrives: there may be thousands.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tianji.balance.turns import Turns
from tianji.buffer.losses import Losses
from tianji.buffer.presence import Presence
from tianji.channels.gauges import Gauge
from tianji.channels.interface import Receiver
from tianji.channels.orders import BufferRows
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
