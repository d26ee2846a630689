"""A program is data: which roles exist, in which worker each lives, and what is wired to what.

          experience lane -------------------------------------------------------------->
envs --> actor --(Stream: Item)--> buffer --(Stream: Batch)--> learner
          ^                                                       |
          +-----------(Board: weights, versioned)-----------------+        policy lane

every role --(gauges)--> balance (in the buffer) --(grants)--> actors      control lane
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig

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
    channel: Literal["stream", "board"]
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


def tianji(config: RunConfig, plan: RunPlan) -> Program:
    """The TianJi style: inference stays with the environments, the buffer with the learner."""
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
            Wire("experience", "stream", "unroll", names, ("buffer",), plan.num_slots),
            Wire("batches", "stream", "batch", ("buffer",), ("learner",), 1),
            Wire("policy", "board", "weights", ("learner",), readers, 1),
        ),
    )
