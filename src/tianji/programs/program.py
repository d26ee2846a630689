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

Feedback says which version a batch has led to and asks for the buffer's state and figures, which
come back as answers. Where buffer and learner share a worker, these are calls (buffer/remote.py).

An item is an unroll. Where actors compute gradients, an item is a token, and each actor's sum of
gradients lies on a board of its own:

          actor --(Board: sum of gradients, count)--> buffer

With an all-reduce (Reduce: total) every actor receives the total and takes the step itself. The
boards then serve actors that join late, and hold the sums of actors that died.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tianji.algorithms.interface import Gather
from tianji.algorithms.registry import load_algorithm
from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.types import RoleKind

EXPERIENCE = "experience"
ROWS = "rows"
"""Name of the wire by which actors ask a server for inference."""
BATCHES = "batches"
FEEDBACK = "feedback"
ANSWERS = "answers"
POLICY = "policy"
TOTAL = "total"
"""Name of the wire by which actors and learner add up their sums, where that is an all-reduce."""
FEEDBACK_SLOTS = 4
"""Messages of a learner that its buffer may not have read yet."""
GATEWAY = "gateway"
"""Name of the bell that wakes the gateway, for roles on other hosts."""
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

    def actors_on(self, host: int) -> tuple[Role, ...]:
        return tuple(role for role in self.of_kind("actor") if role.host == host)

    def has_wire(self, name: str) -> bool:
        return any(wire.name == name for wire in self.wires)

    def splits(self, wire: Wire) -> bool:
        """Return whether the ends of a wire live in different workers."""
        workers = {role.name: role.worker for role in self.roles}
        return len({workers.get(end) for end in (*wire.sources, *wire.targets)}) > 1


def program_for(config: RunConfig, plan: RunPlan) -> Program:
    """Return the program of a run with one group.

    The buffer lives in the learner's worker, unless plan.buffer_worker says otherwise. Each actor
    has a worker of its own, unless actors take turns in one; where inference is in the learner's
    process, that is a second thread of the learner's worker. So is a server of inference on a GPU,
    because frames that it uploads are then there for the learner; on a CPU it has a worker.
    """
    actors = tuple(_actor(plan, index) for index in range(plan.num_actors))
    buffer = Role("buffer", "buffer", 0, config.plan.buffer_worker)
    learner = Role("learner", "learner", 0, "learner")
    servers = (_server(plan),) if plan.inference == "served" else ()
    evaluators = (
        (Role("evaluator", "evaluator", 0, "evaluator"),) if config.evaluate.period_s > 0 else ()
    )
    roles = (*actors, *servers, buffer, learner, *evaluators)
    threads = {learner.worker: plan.learner_threads}
    workers = tuple(
        Worker(name, threads.get(name, plan.actor_threads), cores=plan.cores.get(name, ()))
        for name in dict.fromkeys(role.worker for role in roles)
    )
    return Program(roles, workers, wires_for(config, plan, roles))


def _actor(plan: RunPlan, index: int) -> Role:
    name, together = f"actor-{index}", plan.actors_per_worker
    if plan.inference == "learner":
        return Role(name, "actor", index, "learner", thread=1)
    worker = name if together == 1 else f"actors-{index // together}"
    return Role(name, "actor", index, worker, host=plan.host_of(index))


def _server(plan: RunPlan) -> Role:
    if plan.device == "cpu":
        return Role("inference", "inference", 0, "inference")
    return Role("inference", "inference", 0, "learner", thread=1)


def wires_for(config: RunConfig, plan: RunPlan, roles: tuple[Role, ...]) -> tuple[Wire, ...]:
    """Return the wires between the roles of one group, in the order data passes."""
    cadence = load_algorithm(config.algorithm.name).cadence(config)
    gather = cadence if isinstance(cadence, Gather) else None
    everybody = tuple(role.name for role in roles)
    actors, servers, buffers, learners, evaluators = (
        tuple(role.name for role in roles if role.kind == kind)
        for kind in ("actor", "inference", "buffer", "learner", "evaluator")
    )
    item, batch = ("unroll", "batch") if gather is None else ("token", "sum of gradients")
    sums = actors if gather is not None else ()
    ranks = (*learners, *actors) if gather and gather.realisation == "all-reduce" else ()
    return (
        *([Wire(ROWS, "board", "slot, row; outputs, version", actors, servers)] if servers else []),
        Wire(EXPERIENCE, "stream", item, actors, buffers, plan.num_slots),
        *(Wire(sum_name(i), "board", "sum", (name,), buffers) for i, name in enumerate(sums)),
        Wire(BATCHES, "stream", batch, buffers, learners),
        Wire(
            FEEDBACK, "stream", "version, priorities, question", learners, buffers, FEEDBACK_SLOTS
        ),
        Wire(ANSWERS, "stream", "state, figures, news", buffers, learners),
        *([Wire(TOTAL, "reduce", "sum", ranks, ranks)] if ranks else []),
        Wire(POLICY, "board", "weights", learners, (*actors, *servers, *evaluators)),
        Wire("orders", "board", "desired state", buffers, actors),
        Wire("gauges", "board", "telemetry", everybody, (*buffers, SUPERVISOR)),
        Wire("reports", "stream", "report", everybody, (SUPERVISOR,)),
        Wire("supervision", "board", "desired state", (SUPERVISOR,), everybody),
    )


def sum_name(actor: int) -> str:
    """Return the name of the board with an actor's sum of gradients."""
    return f"sum-{actor}"
