"""The parts of a buffer: a store keeps items, a gate says when they may be taken.

A store is four choices: what is kept of an item (layout), which items a batch takes (sampler),
which item is given up (remover), and when a batch may be taken (the gate).

    store     keeps                   takes                     gives up              gate
    Queue     slots                   all, once                 what was taken        ratio window,
                                                                                      rate limiter,
                                                                                      or bounded
    Pool      slots                   some, at random           the oldest            ratio window
    Replay    copies of steps         transitions, at random    the oldest            ratio window,
                                                                                      rate limiter,
                                                                                      or free
    Sums      nothing: the sums lie   the sum of all actors     the slot, at once     gather rule
              on the actors' boards
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

from tianji.buffer.lanes import Lanes
from tianji.channels.interface import Batches
from tianji.records import BufferRecord, Rounds
from tianji.types import Array, Batch, Episode, Stamp


class Store(Protocol):
    """Holds items from their arrival until they are used up or pushed out.

    store.put(slot, stamp)        # bookkeeping only, or a copy of what is new
    batch = store.take(version)
    ... the learner uses batch ...
    store.finish(batch)           # slots that are free again go back to the receiver
    """

    def put(self, slot: int, stamp: Stamp) -> int:
        """Keep an item that arrived; return how many items that is, as the algorithm counts them,
        and 0 for what only fills the store before the first batch."""
        ...

    def num_held(self) -> int:
        """Return how many unrolls are kept now."""
        ...

    def take(self, version: int) -> Batch: ...

    def finish(self, batch: Batch, priorities: Array | None = None) -> None:
        """Take back a batch that was used; its slots may be given up.

        priorities: new priorities of the batch's items, in the order of `batch.keys`.
        """
        return

    def metrics(self) -> dict[str, float]:
        """Return figures about what was taken since the last call (reuse, age)."""
        return {}

    def state(self, is_last: bool = False) -> dict[str, Any]:
        """Return what a checkpoint keeps: what is held (with the bytes, where worth it), random
        state. Nothing where a resumed run makes it again.

        is_last: the run ends, so that it may take long."""
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue with what state() returned."""
        return


class BufferEnd(Batches, Protocol):
    """A buffer as its learner sees it, in the same process or in a worker of its own."""

    @property
    def due_ns(self) -> int:
        """Time of the next work that needs no arrival; 0: there is none."""
        ...

    def tick(self) -> bool: ...

    def withdraw(self) -> bool:
        """Want no batch any more; return False if one is on its way, which must be used."""
        ...

    def continue_at(self, version: int) -> None:
        """Continue at this version after a resume."""
        ...

    def record(self) -> BufferRecord: ...

    def news(self) -> list[str]:
        """Return what a person should know now, each thing once."""
        ...

    def state(self, is_last: bool = False) -> dict[str, Any]: ...

    def load_state(self, state: dict[str, Any]) -> None: ...


class Progress(Protocol):
    """Counts what has entered the store."""

    def add(self, episodes: list[Episode], env_steps: int) -> None: ...


class Entry(NamedTuple):
    """An item that a version takes in."""

    stamp: Stamp
    slot: int | None
    """None where it entered the store when it arrived."""
    entered_at: int | None = None
    """The learner's version when it entered; None where it enters now, with the batch."""


def by_age(entry: Entry) -> tuple[bool, int, int, int]:
    """Sort the oldest first, so that nothing waits until it is too old; without lag all have the
    same age, and the order is (round, actor). What is in the store already comes before."""
    stamp = entry.stamp
    return entry.slot is not None, stamp.oldest_version, stamp.round, stamp.actor


class Gate(Protocol):
    """Says when a batch may be taken, and how many items actors may start until then."""

    lanes: Lanes
    version: int
    """The learner's version."""

    def starts_with(self, num_held: int) -> None:
        """Count the items that the store holds from before the start."""
        return

    def arrived(self, stamp: Stamp, slot: int) -> bool:
        """Note an item that has arrived; return whether it enters the store at once."""
        ...

    def came(self, actor: int) -> None:
        """Note that the actor has started, for the first time or again."""
        return

    def lost(self, actor: int) -> None:
        """Note that the actor died and its lane was reset; a successor may come."""
        ...

    def gave_up(self, actor: int) -> None:
        """Note that the supervisor will not start the actor again: the others take its turns."""
        return

    def tick(self) -> bool:
        """Look at what has changed and grant slots; return whether there was work."""
        ...

    def may_take(self) -> bool:
        """Return whether a batch may be taken now."""
        ...

    def entering(self) -> list[Entry] | None:
        """Return the items that the next batch takes in; None while they are not all there."""
        ...

    def finish(self, version: int) -> None:
        """Note that the learner published `version` from the batch that was taken."""
        ...

    def continue_at(self, version: int, is_first: bool) -> None:
        """Continue at this version. is_first: no batch was ever taken."""
        ...

    @property
    def due_ns(self) -> int:
        """Time of the next work that needs no arrival; 0: there is none."""
        return 0

    def waiting(self) -> Iterable[Stamp]:
        """Return items that hold a slot and have not entered the store."""
        return ()

    def news(self) -> list[str]:
        """Return what a person should know now, each thing once."""
        return []

    def rounds_record(self) -> Rounds | None:
        """Return the record of the rounds, where gradients are gathered."""
        return None

    def state(self) -> dict[str, Any]:
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue with what state() returned; items that waited are made again."""
        return
