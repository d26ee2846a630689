"""Commands to the processes that measure, and their answers: records, as JSON on a pipe."""

from __future__ import annotations

from typing import Literal

from tianji.config.plan import RunPlan
from tianji.config.schema import Strict
from tianji.costs.profile import ActorCost

LOOK_S = 0.1  # how often a bench checks whether its figure is stable


class Span(Strict):
    """When to work (CLOCK_MONOTONIC, which all processes share); what begins in it counts.

    is_alone: a stable figure ends the work early; else all processes work to the end.
    """

    begin_ns: int
    end_ns: int
    is_alone: bool


class Build(Strict):
    """Build an actor, or a buffer and a learner, for this plan. The answer is Built."""

    what: Literal["actor", "learner"]
    plan: RunPlan


class RecordUnroll(Strict):
    """Save a real unroll for the learner's bench. The answer is Nothing."""

    do: Literal["record"] = "record"


class Measure(Strict):
    """Work for a span. The answer is Sampled or LearnerCost."""

    span: Span
    threads: int = 1


class Command(Strict):
    """One line to a process."""

    command: Build | RecordUnroll | Measure


class Nothing(Strict):
    """The answer to a command that has no result."""


class Built(Strict):
    """An actor or a learner is ready. grown_bytes: memory that building it has added."""

    build_s: float
    memory_bytes: int
    grown_bytes: int = 0
    policy_bytes: int = 0


class Sampled(Strict):
    """The cost of an actor that was measured alone, and facts about its environment.

    step_s: one step of one environment.
    reset_factor: a step with a reset in it, divided by one without.
    send_s: the actor's work to hand over one unroll.
    disturbed_share: the share of the time in which other programs had its core.
    """

    cost: ActorCost
    step_s: float
    reset_factor: float
    send_s: float
    disturbed_share: float
