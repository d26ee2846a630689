"""Presence: the actors that are attached, that were replaced, and that will not come back."""

from __future__ import annotations

from typing import NamedTuple

from tianji.buffer.orders import BufferOrders
from tianji.channels.interface import Receiver
from tianji.channels.orders import BufferRows, Order


class Changes(NamedTuple):
    """Actors whose presence has changed since the last look."""

    come: list[int]
    given_up: list[int]


class Presence:
    """Looks only at missing actors: there may be thousands in all."""

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
