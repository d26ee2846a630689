"""The program of one group: which roles a config and a plan have, and where they live."""

from __future__ import annotations

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
    hosts = range(1, plan.num_hosts) if gather is not None else ()
    ranks = (*learners, *actors) if gather and gather.realisation == "all-reduce" else ()
    return (
        *([Wire(ROWS, "board", "slot, row; outputs, version", actors, servers)] if servers else []),
        Wire(EXPERIENCE, "stream", item, actors, buffers, plan.num_slots),
        *(Wire(sum_name(i), "board", "sum", (name,), buffers) for i, name in enumerate(sums)),
        *(wire for host in hosts for wire in _host_wires(host, buffers)),
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


def _host_wires(host: int, buffers: tuple[str, ...]) -> tuple[Wire, Wire]:
    """Return the wires by which the sums of another host's actors come to the buffer."""
    return (
        Wire(wanted_name(host), "board", "wanted sums", buffers, (GATEWAY,)),
        Wire(total_name(host), "board", "total, counts", (GATEWAY,), buffers),
    )
