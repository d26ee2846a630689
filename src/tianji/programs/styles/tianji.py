"""TianJi: actors, buffer and learner run by themselves, and a balance keeps them in step.

    actor --(experience)--> buffer --(batches)--> learner --(policy)--> actor

Actors infer and simulate in one loop and send what they made without waiting for an answer. The
buffer paces them: an actor is granted as many items as keep the lag at its target. Algorithms whose
actors compute gradients send a token for each, and the sum lies on a board.
"""

from __future__ import annotations

from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.programs import parts
from tianji.programs.program import Program
from tianji.programs.style import Style, as_they_are


def program(config: RunConfig, plan: RunPlan) -> Program:
    """Return the program of any algorithm."""
    gather = parts.gather_of(config)
    item, batch = ("unroll", "batch") if gather is None else ("token", "sum of gradients")
    roles = (
        *parts.actors(plan),
        *parts.servers(plan),
        parts.buffer(config),
        parts.learner(),
        *parts.evaluators(config),
    )
    wires = (
        *parts.rows(roles),
        parts.experience(roles, plan.num_slots, item),
        *(() if gather is None else parts.sums(roles, plan)),
        *parts.training(roles, batch),
        *(() if gather is None else parts.all_reduce(roles, gather)),
        parts.policy(roles),
        *parts.control(roles),
    )
    return Program(roles, parts.workers(plan, roles), wires)


STYLE = Style(
    name="tianji",
    about=(
        "Actors and learner never wait for each other's data; a balance paces the actors, so that "
        "the lag stays at its target."
    ),
    settings=as_they_are,
    program=program,
)
