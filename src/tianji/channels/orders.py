"""Orders: boards of desired state, a row of words per role, each board with one writer.

    supervision.post("actor-0", Order.RESETS, 1)        # the writer
    if rows.supervision[Order.RESETS] != seen:          # the role
        ...

A word says what is wanted now, not what to do: posting it twice changes nothing, and a reader that
comes late finds the newest. NUMBER counts the changes of a row, so that one look tells whether
there is anything new, for a gateway that forwards it, say. Each word stands alone: a reader may see
a new word before the new number. A role acknowledges by showing what it has carried out in its own
gauges, or on the board that it writes itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from tianji.channels.gauges import GAUGE_WORDS, Gauges, rows_by_name
from tianji.channels.memory import BELL_BYTES, IS_ORDERED, Bell, Segment, new_fence
from tianji.types import RoleKind

ORDER_WORDS = 12
ROLE_BYTES = 8 * (GAUGE_WORDS + 2 * ORDER_WORDS)


class Order(IntEnum):
    """The words of a row: NUMBER, those of the supervisor, and those of the buffer to actors."""

    NUMBER = 0
    """Number of changes to the other words of this row."""
    STOP = 1
    """Supervisor, to every role: how urgently to stop (Stop)."""
    RESETS = 2
    """Supervisor, to an actor: how many processes have run it before and are gone. To the buffer:
    the sum over all actors. Buffer, to an actor: for how many of those its lane was reset."""
    GIVEN_UP = 3
    """Supervisor, to an actor: 1 if it is not started again."""
    HURRY = 4
    """Buffer, to an actor: unrolls before this round are to be sent now, short as they are."""
    CLOSED = 5
    """Buffer, to an actor: gradients at versions before this one are no longer wanted."""
    OPENED_NS = 6
    """Buffer, to an actor: since when gradients at the newest version are wanted. A time of
    CLOCK_MONOTONIC on the buffer's host, or of the virtual clock."""
    CALL = 7
    """Buffer, to an actor: the team of an all-reduce and the version whose sums it gives now
    (channels/reduce.py, Call). One word, so that nobody sees half of it."""
    OTHER_STEPS = 8
    """Supervisor, to a learner: environment steps of the run that its group does not count."""
    SUM_LOST = 9
    """Supervisor, to an actor: RESETS when its host was lost last, and its sum of gradients with
    it; a sum outlives its actor otherwise."""


class Stop(IntEnum):
    """Urgency of a stop."""

    NO = 0
    FINISH = 1
    """Finish the version in work, save, report, end."""
    NOW = 2


class Poster:
    """The writer of some rows."""

    def __init__(self, rows: Sequence[memoryview[int]]) -> None:
        self._rows = rows
        self._fence = new_fence()

    def post(self, row: int, order: Order, value: int) -> None:
        """Say what is wanted of one role."""
        self.post_to([row], order, value)

    def post_to(self, rows: Iterable[int], order: Order, value: int) -> None:
        """Say the same to several roles."""
        if not IS_ORDERED:
            self._fence()  # what was written before is seen by a role that sees the order
        for index in rows:
            row = self._rows[index]
            if row[order] != value:
                row[order] = value
                row[Order.NUMBER] += 1


class Orders:
    """Rows by role name, in the same order in every process."""

    def __init__(self, roles: Iterable[str], words: memoryview | None = None) -> None:
        """words: the memory of all rows, private to this process if none is given."""
        names = tuple(roles)
        self.rows = rows_by_name(names, ORDER_WORDS, words)
        self._indices = {name: index for index, name in enumerate(names)}
        self._poster = Poster(list(self.rows.values()))

    def post(self, role: str, order: Order, value: int) -> None:
        """Say what is wanted of a role."""
        self._poster.post(self._indices[role], order, value)


class ActorRows(NamedTuple):
    """An actor's rows of the control lane."""

    gauges: memoryview[int]
    supervision: memoryview[int]
    """Orders of the supervisor."""
    orders: memoryview[int]
    """Orders of the buffer."""


class BufferRows(NamedTuple):
    """A buffer's rows of the control lane, and those of its actors."""

    gauges: memoryview[int]
    supervision: memoryview[int]
    actors: Sequence[ActorRows]

    @staticmethod
    def private(num_actors: int) -> BufferRows:
        """Return rows that nobody else sees, for measurements and simulations."""

        def words(count: int) -> memoryview[int]:
            return memoryview(bytearray(8 * count)).cast("q")

        actors = [
            ActorRows(words(GAUGE_WORDS), words(ORDER_WORDS), words(ORDER_WORDS))
            for _ in range(num_actors)
        ]
        return BufferRows(words(GAUGE_WORDS), words(ORDER_WORDS), actors)


def control_bytes(num_roles: int, num_workers: int) -> int:
    """Return the size of the control segment."""
    return ROLE_BYTES * num_roles + BELL_BYTES * num_workers


class Control:
    """The same view in every process, over one segment."""

    def __init__(
        self, kinds: Mapping[str, RoleKind], workers: Sequence[str], segment: Segment
    ) -> None:
        """kinds: the kind of every role, by its name."""
        num_roles = len(kinds)
        self.segment = segment
        self.gauges = Gauges(kinds, segment.words(0, GAUGE_WORDS * num_roles))
        offset = 8 * GAUGE_WORDS * num_roles
        self.supervision = Orders(kinds, segment.words(offset, ORDER_WORDS * num_roles))
        """Orders of the supervisor to every role."""
        offset += 8 * ORDER_WORDS * num_roles
        self.orders = Orders(kinds, segment.words(offset, ORDER_WORDS * num_roles))
        """Orders of the buffer to its actors."""
        self._bells_at = ROLE_BYTES * num_roles
        self._workers = {worker: number for number, worker in enumerate(workers)}

    @staticmethod
    def create(kinds: Mapping[str, RoleKind], workers: Sequence[str]) -> Control:
        segment = Segment.create("control", control_bytes(len(kinds), len(workers)))
        control = Control(kinds, workers, segment)
        for worker in workers:
            control.bell(worker).initialise()
        return control

    def bell(self, worker: str) -> Bell:
        """Open a worker's bell. Each thread that rings one needs a bell of its own."""
        return Bell(self.segment, self._bells_at + self._workers[worker] * BELL_BYTES)

    def ring_all(self) -> None:
        for worker in self._workers:
            self.bell(worker).ring()

    def stop(self, how: Stop) -> None:
        """Tell every role; a worker that sleeps wakes up. A stop only becomes more urgent."""
        for role, row in self.supervision.rows.items():
            self.supervision.post(role, Order.STOP, max(row[Order.STOP], how))
        self.ring_all()
