"""The Stream in shared memory whose senders wait for a confirmation of each item.

    sender.send(slot, stamp)
    sender.reserve()                # None, until receiver.take() has returned that slot

ShmSender goes on after a send and learns of the delivery by the grants that follow. Here the
receiver counts what it has taken of each lane, and the sender begins nothing before its last item
is counted. Nobody blocks: the actor sleeps on its bell, as when it has no grant.
"""

from __future__ import annotations

from tianji.channels.interface import Grant
from tianji.channels.shm import TAKEN, ShmReceiver, ShmSender
from tianji.types import Stamp


class ConfirmedSender(ShmSender):
    """An actor's end of its lane."""

    _awaited = 0
    """The receiver has to have taken this many items, counted as those that were sent."""

    def attach(self) -> None:
        super().attach()
        self._awaited = 0  # items of an older generation are void: nobody confirms them

    def is_waiting(self) -> bool:
        return self._head[TAKEN] < self._awaited

    def reserve(self) -> Grant | None:
        return None if self.is_waiting() else super().reserve()

    def send(self, slot: int, stamp: Stamp) -> None:
        super().send(slot, stamp)
        self._num_announced = self._awaited = self._num_sent
        self._bell.ring()  # even a receiver that expects more, because this end waits for it


class ConfirmingReceiver(ShmReceiver):
    """The buffer's end of all lanes."""

    def _take_from(self, index: int) -> int | None:
        slot = super()._take_from(index)
        if slot is not None:
            taken = self._num_read[index] - len(self._arrived[index])
            self._lanes[index].head[TAKEN] = taken
            self._bells[index].ring()
        return slot
