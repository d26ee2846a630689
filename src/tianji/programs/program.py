"""A program is data: which roles exist, in which worker each lives, and what is wired to what.

          experience lane -------------------------------------------------------------->
envs --> actor --(Stream: Item)--> buffer --(Stream: Batch)--> learner
          ^                                                       |
          +-----------(Board: weights, versioned)-----------------+        policy lane

every role --(gauges)--> balance (in the buffer) --(grants)--> actors      control lane

Where items are gradients, the lane carries tokens and every actor's sum lies on a board of its own:

          experience lane -------------------------------------------------------------->
envs --> actor --(Stream: token)--> buffer (gather rule) --(closed)--> learner
          | ^                                                           ^  |
          | +-------------(Board: weights, versioned)-------------------|--+     policy lane
          +---------------(Board: sum of gradients, count)--------------+        sums

With an all-reduce (Reduce: total) the sums meet without the learner, every actor takes the step
itself, and the two boards are for those who come late and for what the dead have left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from tianji.algorithms.interface import Gather
from tianji.algorithms.registry import load_algorithm
from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig

TOTAL = "total"
"""Name of the wire by which actors and learner add up their sums, where that is an all-reduce."""

Kind = Literal["actor", "buffer", "learner", "evaluator"]


@dataclass(frozen=True, slots=True)
class Role:
    """Role("actor-0", "actor", 0, worker="actor-0")"""

    name: str
    kind: Kind
    index: int
    worker: str
    """The process it lives in; roles of one worker take turns."""


@dataclass(frozen=True, slots=True)
class Wire:
    """Wire("experience", "stream", "unroll", ("actor-0",), ("buffer",), capacity=6)"""

    name: str
    channel: Literal["stream", "board", "reduce"]
    carries: str
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    capacity: int


@dataclass(frozen=True, slots=True)
class Program:
    """What exists and what is wired to what, in the order data passes."""

    roles: tuple[Role, ...]
    wires: tuple[Wire, ...]

    def workers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(role.worker for role in self.roles))

    def of_kind(self, kind: Kind) -> tuple[Role, ...]:
        return tuple(role for role in self.roles if role.kind == kind)


def program_for(config: RunConfig, plan: RunPlan) -> Program:
    """In the style that the algorithm asks for."""
    cadence = load_algorithm(config.algorithm.name).cadence(config)
    gathers = isinstance(cadence, Gather)
    return gathering(config, plan) if gathers else tianji(config, plan)


def tianji(config: RunConfig, plan: RunPlan) -> Program:
    """The TianJi style: inference stays with the environments, the buffer with the learner."""
    return _program(config, plan, "unroll", "batch", sums=False)


def gathering(config: RunConfig, plan: RunPlan) -> Program:
    """Gradients are made where the environments are, and only counted on their way."""
    program = _program(config, plan, "token", "sum of gradients", sums=True)
    cadence = load_algorithm(config.algorithm.name).cadence(config)
    if not isinstance(cadence, Gather) or cadence.realisation == "server":
        return program
    ranks = ("learner", *(role.name for role in program.of_kind("actor")))
    return replace(program, wires=(*program.wires, Wire(TOTAL, "reduce", "sum", ranks, ranks, 1)))


def _program(config: RunConfig, plan: RunPlan, item: str, batch: str, sums: bool) -> Program:
    actors = tuple(Role(f"actor-{i}", "actor", i, f"actor-{i}") for i in range(plan.num_actors))
    buffer = Role("buffer", "buffer", 0, "learner")
    learner = Role("learner", "learner", 0, "learner")
    evaluators = (
        (Role("evaluator", "evaluator", 0, "evaluator"),) if config.evaluate.period_s > 0 else ()
    )
    names = tuple(actor.name for actor in actors)
    readers = (*names, *(role.name for role in evaluators))
    return Program(
        roles=(*actors, buffer, learner, *evaluators),
        wires=(
            Wire("experience", "stream", item, names, ("buffer",), plan.num_slots),
            *(
                Wire(sum_name(actor.index), "board", "sum", (actor.name,), ("buffer",), 1)
                for actor in (actors if sums else ())
            ),
            Wire("batches", "stream", batch, ("buffer",), ("learner",), 1),
            Wire("policy", "board", "weights", ("learner",), readers, 1),
        ),
    )


def sum_name(actor: int) -> str:
    """Of the board with an actor's sum of gradients."""
    return f"sum-{actor}"
