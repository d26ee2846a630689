"""A program is data: the roles that exist, the workers they live in, and the wires between them.

          experience lane -------------------------------------------------------------->
envs --> actor --(Stream: item)--> buffer --(Stream: batch)--> learner
          ^ ^                        |  <--(Stream: feedback)--   |          feedback lane
          | +----(Board: orders)-----+                            |          control lane
          +-----------(Board: policy, versioned)------------------+          policy lane

every role --(Board: gauges)--> buffer, supervisor                           telemetry
every role --(Stream: reports)--> supervisor --(Board: supervision)--> every role

Actors may live on other hosts than their learner. Each host then has a program with all roles, runs
those that are there, and has a gateway, which stands in for the others (gateways/).

A server may infer for actors in other processes:

          actor --(Board: rows)--> inference <--(Board: policy)-- learner

Actors may have to ask for the policy before each item, and wait for the answer:

          actor --(Board: request; version)--> learner

They may also have to wait until the buffer has confirmed each item:

          buffer --(Board: items taken)--> actor

Feedback says which version a batch has led to and asks for the buffer's state and figures, which
come back as answers. Where buffer and learner share a worker, these are calls (buffer/remote.py).

An item is an unroll. Where actors compute gradients, an item is a token, and each actor's sum of
gradients lies on a board of its own:

          actor --(Board: sum of gradients, count)--> buffer

Those of actors on another host are added up there. The buffer asks the gateway for the total:

          buffer --(Board: wanted sums)--> gateway --(Board: total, counts)--> buffer

With an all-reduce (Reduce: total) every actor receives the total and takes the step itself. The
boards then serve actors that join late, and hold the sums of actors that died.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tianji.types import RoleKind

EXPERIENCE = "experience"
ROWS = "rows"
"""Name of the wire by which actors ask a server for inference."""
BATCHES = "batches"
FEEDBACK = "feedback"
ANSWERS = "answers"
POLICY = "policy"
REQUESTS = "requests"
"""Name of the wire by which actors ask for the policy before each item, where they have to."""
CONFIRMATIONS = "confirmations"
"""Name of the wire by which the buffer confirms each item, where actors wait for that."""
TOTAL = "total"
"""Name of the wire by which actors and learner add up their sums, where that is an all-reduce."""
FEEDBACK_SLOTS = 4
"""Messages of a learner that its buffer may not have read yet."""
GATEWAY = "gateway"
"""Name of the bell that wakes the gateway, for roles on other hosts, and of its end of a wire."""
SUPERVISOR = "supervisor"
"""Name of the engine's own end of a wire. It starts and watches the roles, and is none itself."""


@dataclass(frozen=True, slots=True)
class Role:
    """Role("actor-0", "actor", 0, worker="actor-0")"""

    name: str
    kind: RoleKind
    index: int
    """Number among the roles of its kind."""
    worker: str
    """The worker that it lives in."""
    group: int = 0
    """The learner that it belongs to, with that learner's buffer and actors."""
    host: int = 0
    """The host that it lives on, counted from that of the group's learner."""
    thread: int = 0
    """Roles of a worker with the same number take turns on one thread."""


@dataclass(frozen=True, slots=True)
class Worker:
    """Worker("learner", threads=2, cores=(0, 1))"""

    name: str
    threads: int
    """Threads of torch in it."""
    cores: tuple[int, ...] = ()
    """Cores that it is pinned to; none: the system decides."""


@dataclass(frozen=True, slots=True)
class Wire:
    """Wire("experience", "stream", "unroll", ("actor-0",), ("buffer",), capacity=6)"""

    name: str
    channel: Literal["stream", "board", "reduce"]
    carries: str
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    capacity: int = 1


@dataclass(frozen=True, slots=True)
class Program:
    """What exists and what is wired to what, in the order data passes."""

    roles: tuple[Role, ...]
    workers: tuple[Worker, ...]
    wires: tuple[Wire, ...]
    here: int = 0
    """The host that this program is run on."""

    def of_kind(self, kind: RoleKind) -> tuple[Role, ...]:
        return tuple(role for role in self.roles if role.kind == kind)

    def roles_in(self, worker: str) -> tuple[Role, ...]:
        return tuple(role for role in self.roles if role.worker == worker)

    def worker(self, name: str) -> Worker:
        return next(worker for worker in self.workers if worker.name == name)

    def kinds(self) -> dict[str, RoleKind]:
        return {role.name: role.kind for role in self.roles}

    def bells(self) -> dict[str, str]:
        """Return the name of the bell that wakes each role: that of its thread, or of the gateway
        if it lives on another host."""
        return {role.name: self._bell(role) for role in self.roles}

    def _bell(self, role: Role) -> str:
        if role.host != self.here:
            return GATEWAY
        return f"{role.worker}/{role.thread}" if role.thread else role.worker

    def workers_here(self) -> tuple[Worker, ...]:
        """Return the workers of this host."""
        held = {role.worker for role in self.roles if role.host == self.here}
        return tuple(worker for worker in self.workers if worker.name in held)

    def other_hosts(self) -> tuple[int, ...]:
        """Return the hosts of actors that do not run this program."""
        return tuple(sorted({role.host for role in self.roles} - {self.here}))

    def actors_on(self, host: int) -> tuple[Role, ...]:
        return tuple(role for role in self.of_kind("actor") if role.host == host)

    def has_wire(self, name: str) -> bool:
        return any(wire.name == name for wire in self.wires)

    def is_source(self, role: Role, name: str) -> bool:
        """Return whether a role writes to the wire of this name."""
        return any(role.name in wire.sources for wire in self.wires if wire.name == name)

    def splits(self, wire: Wire) -> bool:
        """Return whether the ends of a wire live in different workers."""
        workers = {role.name: role.worker for role in self.roles}
        return len({workers.get(end) for end in (*wire.sources, *wire.targets)}) > 1


def sum_name(actor: int) -> str:
    """Return the name of the board with an actor's sum of gradients."""
    return f"sum-{actor}"


def wanted_name(host: int) -> str:
    """Return the name of the board on which another host is asked for the total of its actors."""
    return f"wanted-{host}"


def total_name(host: int) -> str:
    """Return the name of the board with the total of another host's actors."""
    return f"total-{host}"
