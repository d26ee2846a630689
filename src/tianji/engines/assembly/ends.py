"""Ends: opens the channels that the wires of a program describe, for the roles of one process.

wiring.py has them on shared memory, inproc_ends.py in one process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from tianji.buffer.stores.ring_layout import RingLayout
from tianji.channels.contributions import HostSums
from tianji.channels.gauges import Gauges
from tianji.channels.interface import Batches, BoardReader, BoardWriter, Receiver, Sender
from tianji.channels.orders import ActorRows, BufferRows, Orders
from tianji.channels.peers.interface import Peers
from tianji.programs.program import Role
from tianji.types import Clock

if TYPE_CHECKING:
    from tianji.channels.reduce import GlooReduce


@dataclass(frozen=True, slots=True)
class TeamMate:
    """One of the learners that add up their gradients: TeamMate(1, (0, 1), 30.0, beat, "")"""

    group: int
    team: Sequence[int]
    """The groups of all of them, by rank."""
    timeout_s: float
    """The longest time that one may make the others wait."""
    show_life: Callable[[], None]
    """Called meanwhile."""
    address: str
    """Address by which the other hosts reach this one; empty: all are on this host."""

    @property
    def rank(self) -> int:
        return self.team.index(self.group)


class Ends(Protocol):
    """Opens the ends of a program's channels, as far as they lie in this process."""

    gauges: Gauges
    supervision: Orders
    orders: Orders

    def sender(self, actor: Role) -> Sender:
        """Open an actor's end of its lane, after its end of the policy: it may have to ask for the
        policy when it has a slot."""
        ...

    def receiver(self) -> Receiver: ...

    def replay_memory(self, layout: RingLayout) -> Any:
        """Open the memory of the replay store; what a learner before this one has put is there."""
        ...

    def policy_writer(self, nbytes: int) -> BoardWriter: ...

    def policy_reader(self, reader: Role) -> BoardReader: ...

    def batches(self, buffer: Batches) -> Batches:
        """Open the learner's end of the batches of a buffer; it may have to answer actors."""
        ...

    def sum_writer(self, actor: Role, nbytes: int) -> tuple[BoardWriter, BoardReader]:
        """Open the board of an actor's sum; the reader finds what a predecessor has left."""
        ...

    def sum_readers(self, nbytes: int) -> Sequence[BoardReader]:
        """Open the boards of all actors' sums, by index."""
        ...

    def host_sums(self) -> Sequence[HostSums]:
        """Open the boards on which other hosts are asked for the totals of their actors, and on
        which these come."""
        ...

    def peer_writer(self, group: int, nbytes: int) -> BoardWriter:
        """Open the board on which the learner of this group posts its parameters."""
        ...

    def peer_reader(self, group: int, nbytes: int) -> BoardReader:
        """Open the board of another group's learner."""
        ...

    def peers(self, mate: TeamMate) -> Peers:
        """Meet the learners that add up their gradients."""
        ...

    def meeting_clock(self) -> Clock:
        """Return the clock by which learners decide how long to wait for each other, and how often
        to look."""
        ...

    def reduce(self, role: Role, timeout_s: float) -> GlooReduce | None:
        """Open a rank's end of the all-reduce; None where there is none between processes.

        timeout_s: the longest that one rank may let the others wait."""
        ...


def actor_rows(ends: Ends, actor: Role) -> ActorRows:
    name = actor.name
    return ActorRows(ends.gauges.rows[name], ends.supervision.rows[name], ends.orders.rows[name])


def buffer_rows(ends: Ends, buffer: Role, actors: Iterable[Role]) -> BufferRows:
    own, orders = ends.gauges.rows[buffer.name], ends.supervision.rows[buffer.name]
    return BufferRows(own, orders, [actor_rows(ends, actor) for actor in actors])
