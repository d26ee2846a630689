"""Builds both ends of served inference: the server, and what its actors ask with."""

from __future__ import annotations

from collections.abc import Callable

from tianji.actor.served import ServedRows
from tianji.algorithms.accelerators.inference import RowActing
from tianji.algorithms.accelerators.lanes import build_lanes
from tianji.algorithms.interface import Acting
from tianji.algorithms.registry import load_algorithm
from tianji.channels.requests import Asker
from tianji.engines.assembly.model import acting_model
from tianji.engines.assembly.wiring import SharedEnds
from tianji.engines.spec import RunSpec
from tianji.errors import UsageError
from tianji.inference.role import InferenceServer
from tianji.models.tensors import Snapshot
from tianji.programs.program import Program, Role
from tianji.trace.parts import trace_lanes, trace_reader
from tianji.trace.spans import Spans


def served_by(ends: SharedEnds, actor: Role) -> Callable[[Acting], Asker]:
    """Return what makes an actor's acting side ask the server."""

    def serve(acting: Acting) -> Asker:
        rows = _checked(acting)
        asker = ends.asker(actor, rows.network.num_outputs)
        name, slots = next(iter(ends.slots()[0].items()))
        rows.rows = ServedRows(asker, name, slots)
        return asker

    return serve


def build_server(
    spec: RunSpec, program: Program, ends: SharedEnds, role: Role, spans: Spans | None
) -> InferenceServer:
    config, policy = spec.config, ends.policy_reader(role)
    model = acting_model(spec, spec.plan.device)
    acting = load_algorithm(config.algorithm.name).build_acting(model, spec.spaces, config)
    network = _checked(acting).network
    actors = program.of_kind("actor")
    lanes = build_lanes(network, spec.spaces.observation, ends.slots()[0], len(actors))
    return InferenceServer(
        ends.answerer(network.num_outputs),
        lanes if spans is None else trace_lanes(lanes, spans),
        policy if spans is None else trace_reader(policy, spans),
        Snapshot(model).read_from,
        [ends.bell(actor).ring for actor in actors],
        ends.gauges.rows[role.name],
    )


def _checked(acting: Acting) -> RowActing:
    """Return an acting side whose rows a server can evaluate; else raise UsageError."""
    if not isinstance(acting, RowActing):
        raise UsageError(
            f"inference is 'served', and {type(acting).__name__} evaluates its network itself. Use "
            "--inference actor-cpu, or derive it from RowActing."
        )
    return acting
