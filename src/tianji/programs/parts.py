"""The building blocks of programs: the roles and the wires that the styles compose.

    roles = (*actors(plan), buffer(config), learner(), *evaluators(config))
    wires = (experience(roles, plan.num_slots), *training(roles), policy(roles), *control(roles))
    Program(roles, workers(plan, roles), wires)

Every block of wires takes the roles of the group, and connects those that are there.
"""

from __future__ import annotations

from dataclasses import replace

from tianji.algorithms.interface import Gather
from tianji.algorithms.registry import load_algorithm
from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.programs.program import (
    ANSWERS,
    BATCHES,
    EXPERIENCE,
    FEEDBACK,
    FEEDBACK_SLOTS,
    GATEWAY,
    POLICY,
    ROWS,
    SUPERVISOR,
    TOTAL,
    Program,
    Role,
    Wire,
    Worker,
    sum_name,
    total_name,
    wanted_name,
)
from tianji.types import RoleKind

Roles = tuple[Role, ...]
Wires = tuple[Wire, ...]


def actors(plan: RunPlan) -> Roles:
    """Return the actors. Each has a worker of its own, unless actors take turns in one. Where
    inference is in the learner's process, they are a second thread of the learner's worker."""
    return tuple(_actor(plan, index) for index in range(plan.num_actors))


def _actor(plan: RunPlan, index: int) -> Role:
    name, together = f"actor-{index}", plan.actors_per_worker
    if plan.inference == "learner":
        return Role(name, "actor", index, "learner", thread=1)
    worker = name if together == 1 else f"actors-{index // together}"
    return Role(name, "actor", index, worker, host=plan.host_of(index))


def servers(plan: RunPlan) -> Roles:
    """Return the server that infers for all actors, if there is one. On a GPU it is a second thread
    of the learner's worker, because frames that it uploads are then there for the learner; on a CPU
    it has a worker."""
    if plan.inference != "served":
        return ()
    if plan.device == "cpu":
        return (Role("inference", "inference", 0, "inference"),)
    return (Role("inference", "inference", 0, "learner", thread=1),)


def buffer(config: RunConfig) -> Role:
    """Return the buffer. It lives in the learner's worker, unless plan.buffer_worker says
    otherwise."""
    return Role("buffer", "buffer", 0, config.plan.buffer_worker)


def learner() -> Role:
    """Return the learner."""
    return Role("learner", "learner", 0, "learner")


def evaluators(config: RunConfig) -> Roles:
    """Return the evaluator, if the run has one."""
    if config.evaluate.period_s == 0:
        return ()
    return (Role("evaluator", "evaluator", 0, "evaluator"),)


def workers(plan: RunPlan, roles: Roles) -> tuple[Worker, ...]:
    """Return the workers that hold these roles, with their threads and cores."""
    threads = {role.worker: plan.learner_threads for role in roles if role.kind == "learner"}
    return tuple(
        Worker(name, threads.get(name, plan.actor_threads), cores=plan.cores.get(name, ()))
        for name in dict.fromkeys(role.worker for role in roles)
    )


def beside_learner(program: Program, plan: RunPlan, *kinds: RoleKind, thread: int) -> Program:
    """Return the program with the roles of these kinds on a thread of the learner's worker."""
    roles = tuple(
        replace(role, worker="learner", thread=thread) if role.kind in kinds else role
        for role in program.roles
    )
    return Program(roles, workers(plan, roles), program.wires)


def rows(roles: Roles) -> Wires:
    """Connect actors with the server that infers for them, if there is one."""
    if not (servers := names(roles, "inference")):
        return ()
    return (Wire(ROWS, "board", "slot, row; outputs, version", names(roles, "actor"), servers),)


def experience(roles: Roles, num_slots: int, item: str = "unroll") -> Wire:
    """Let actors send items to the buffer. num_slots: items in work, waiting, or in use."""
    ends = names(roles, "actor"), names(roles, "buffer")
    return Wire(EXPERIENCE, "stream", item, *ends, num_slots)


def training(roles: Roles, batch: str = "batch") -> Wires:
    """Let the learner take batches, and tell the buffer what became of them."""
    buffers, learners = names(roles, "buffer"), names(roles, "learner")
    tells = "version, priorities, question"
    return (
        Wire(BATCHES, "stream", batch, buffers, learners),
        Wire(FEEDBACK, "stream", tells, learners, buffers, FEEDBACK_SLOTS),
        Wire(ANSWERS, "stream", "state, figures, news", buffers, learners),
    )


def policy(roles: Roles) -> Wire:
    """Publish the policy to all roles that choose actions."""
    readers = names(roles, "actor", "inference", "evaluator")
    return Wire(POLICY, "board", "weights", names(roles, "learner"), readers)


def control(roles: Roles) -> Wires:
    """Connect orders, gauges, reports and supervision."""
    everybody, buffers = tuple(role.name for role in roles), names(roles, "buffer")
    return (
        Wire("orders", "board", "desired state", buffers, names(roles, "actor")),
        Wire("gauges", "board", "telemetry", everybody, (*buffers, SUPERVISOR)),
        Wire("reports", "stream", "report", everybody, (SUPERVISOR,)),
        Wire("supervision", "board", "desired state", (SUPERVISOR,), everybody),
    )


def gather_of(config: RunConfig) -> Gather | None:
    """Return the gather rule of an algorithm whose actors compute gradients; None for others."""
    cadence = load_algorithm(config.algorithm.name).cadence(config)
    return cadence if isinstance(cadence, Gather) else None


def sums(roles: Roles, plan: RunPlan) -> Wires:
    """Give every actor a board for its sum of gradients. Those of other hosts come as a total."""
    buffers, hosts = names(roles, "buffer"), range(1, plan.num_hosts)
    return (
        *(
            Wire(sum_name(index), "board", "sum", (name,), buffers)
            for index, name in enumerate(names(roles, "actor"))
        ),
        *(wire for host in hosts for wire in _host_wires(host, buffers)),
    )


def _host_wires(host: int, buffers: tuple[str, ...]) -> Wires:
    """Return the wires by which the sums of another host's actors come to the buffer."""
    return (
        Wire(wanted_name(host), "board", "wanted sums", buffers, (GATEWAY,)),
        Wire(total_name(host), "board", "total, counts", (GATEWAY,), buffers),
    )


def all_reduce(roles: Roles, gather: Gather) -> Wires:
    """Let learner and actors add up their sums, if that is how the algorithm gathers them."""
    if gather.realisation != "all-reduce":
        return ()
    ranks = (*names(roles, "learner"), *names(roles, "actor"))
    return (Wire(TOTAL, "reduce", "sum", ranks, ranks),)


def names(roles: Roles, *kinds: RoleKind) -> tuple[str, ...]:
    """Return the names of the roles of these kinds, kind by kind."""
    return tuple(role.name for kind in kinds for role in roles if role.kind == kind)
