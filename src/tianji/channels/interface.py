"""The three kinds of channel, as the rooms see them.

Stream: every item matters. The buffer owns all slots and *grants* them, so that memory is bounded
and an actor without a grant does not start (it is `paced`); a send never waits.

    actor                                     buffer
    grant = sender.reserve()                  receiver.grant(lane, round)
    ... write sender.unroll(grant.slot) ...   slot = receiver.take()
    sender.send(grant.slot, stamp)            ... read receiver.arrays["reward"][slot] ...
                                              receiver.release(slot)

Board: only the latest value matters. post() and latest() never wait for each other, and a reader
never sees half of one version and half of another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tianji.types import Array, Batch, Stamp, Unroll

Bytes: TypeAlias = NDArray[np.uint8]


class Grant(NamedTuple):
    """Permission to produce one unroll: the slot to write, and its round number."""

    slot: int
    round: int


class Sender(Protocol):
    """An actor's end of its lane. Slots are used one at a time: reserve, write, send."""

    arrays: dict[str, Array]
    """Every field of every slot: [num_slots, rows, ...] by field name."""

    def reserve(self) -> Grant | None:
        """The next granted slot, or None: then the actor is paced, unless this end is waiting."""

    def is_waiting(self) -> bool:
        """Return whether the other end has to answer something before this one may go on."""

    def unroll(self, slot: int) -> Unroll:
        """The arrays of a slot, to be written in place."""

    def send(self, slot: int, stamp: Stamp) -> None:
        """Hand a written slot over. Never waits."""

    def is_stale(self) -> bool:
        """The other end was reborn: whatever is reserved is void. Call attach() to go on."""

    def attach(self) -> None:
        """From now on no slot reserved earlier is touched; new grants may come."""


class Receiver(Protocol):
    """The buffer's end of all lanes, and the owner of the slots."""

    arrays: dict[str, Array]
    """Every field of every slot: [num_slots, rows, ...] by field name."""
    num_lanes: int

    def take(self) -> int | None:
        """The slot of the next unroll that has arrived, lanes in turn, or None."""

    def stamp(self, slot: int) -> Stamp: ...

    def expect(self, count: int) -> None:
        """Nothing can be done before this many more unrolls have arrived: a sleeping receiver need
        not be woken until then, unless a sender has no grant left."""

    def grant(self, lane: int, round_number: int, count: int = 1) -> int:
        """Give a lane free slots, for this round and those after it. Returns how many: fewer when
        there are no more, none when the lane is not attached."""

    def release(self, slot: int) -> None:
        """The slot may be granted again."""

    def reset_lane(self, lane: int) -> list[int]:
        """The lane's sender died: everything it had sent is returned, and its grants come back."""

    def is_attached(self, lane: int) -> bool:
        """Return whether the lane's sender is there to take a grant."""

    def wake_senders(self) -> None:
        """Wake all senders, because there is news for them on another channel."""


class Batches(Protocol):
    """The learner's end of the stream of batches. In the buffer's process, a batch is handed over
    by reference and its slots are read in place."""

    def take(self) -> Batch | None:
        """The next batch, or None while there is not enough to make one."""

    def finish(self, batch: Batch, version: int, priorities: Array | None = None) -> None:
        """The batch led to `version`, which is published. priorities: of its items, by its keys."""


class BoardWriter(Protocol):
    """The only writer of a board."""

    def post(self, version: int, write: Callable[[Bytes], None]) -> None:
        """Publish what `write` puts into the payload it is given, as `version`."""


class BoardReader(Protocol):
    """One of many readers of a board."""

    def version(self) -> int:
        """The latest version, -1 before the first; cheap enough for every step."""

    def latest(self, read: Callable[[Bytes], None]) -> int:
        """Let `read` copy the latest payload; returns its version."""


class Total(NamedTuple):
    """The total of all contributions to one version, weighed by the gather rule."""

    sum_P: Array
    counts: list[int]
    """True number of gradients of each actor in it."""


class Totals(Protocol):
    """An actor's end of an all-reduce, where it takes the steps of the learner itself."""

    def is_under_way(self) -> bool:
        """The actor has given its sum, and the total is not there yet."""

    def total(self, version: int) -> Total | None:
        """The total of the round at `version`; None where this actor has not got it, and must take
        the next version from the board."""
