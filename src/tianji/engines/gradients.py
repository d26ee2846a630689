"""Roles of algorithms that gather gradients, from a config and a plan; see build.py."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch

from tianji.actor.gradients import GradientActor, GradientActorPlan
from tianji.algorithms.interface import Gather
from tianji.algorithms.registry import load_algorithm
from tianji.balance.given_times import Times
from tianji.balance.gradient_timing import Timing, closing_s
from tianji.buffer.adding import Adding
from tianji.buffer.gathering import Gathering, GatherPlan
from tianji.buffer.rules import GatherRule, build_rule
from tianji.channels.interface import (
    BoardReader,
    ContributionWriter,
    Receiver,
    Sender,
)
from tianji.channels.reports import Reports
from tianji.engines.build import build_actor_world, build_model, seed_for
from tianji.engines.spec import RunSpec
from tianji.learner.progress import Progress
from tianji.models.flat import Snapshot, flatten
from tianji.trace.parts import (
    trace_acting,
    trace_reader,
    trace_receiver,
    trace_sender,
    trace_world,
)
from tianji.trace.spans import Spans
from tianji.types import Clock
from tianji.virtual.costs import costs_of

OpenSender = Callable[[], Sender]
"""An actor's end of its lane: whoever has opened it is ready to work."""
OpenContributions = Callable[[int], ContributionWriter]
"""An actor's end, for so many parameters."""
MakeAdding = Callable[[GatherRule, int], Adding]
"""How the sums of that rule come together, for so many parameters."""


def gather_of(spec: RunSpec) -> Gather | None:
    """How this run gathers gradients; None where its items are experience."""
    return load_algorithm(spec.config.algorithm.name).cadence(spec.config).gather


def build_gradient_actor(
    spec: RunSpec,
    index: int,
    open_sender: OpenSender,
    policy: BoardReader,
    open_contributions: OpenContributions,
    gauges: memoryview[int],
    spans: Spans | None = None,
    now_ns: Clock = time.monotonic_ns,
    reports: Reports | None = None,
) -> GradientActor:
    plan, config = spec.plan, spec.config
    algorithm = load_algorithm(config.algorithm.name)
    assert algorithm.build_estimator is not None, "an algorithm that gathers has an estimator"
    model = build_model(spec)
    acting = algorithm.build_acting(model, spec.spaces, config)
    world = build_actor_world(spec, index, gauges, reports)
    sender = open_sender()
    if spans is not None:
        acting, world = trace_acting(acting, spans), trace_world(world, spans)
        policy, sender = trace_reader(policy, spans), trace_sender(sender, index, spans)
    seed = seed_for(config.seed, "actor", index)
    return GradientActor(
        GradientActorPlan(index, plan.num_rows, seed, times_rows=config.times.per == "step"),
        world=world,
        acting=acting,
        estimator=algorithm.build_estimator(model, spec.spaces, config),
        read_policy=Snapshot(model).read_from,
        policy=policy,
        sender=sender,
        contributions=open_contributions(num_parameters(model)),
        gauges=gauges,
        now_ns=now_ns,
        timing=timing_of(spec, index, num_parameters(model)),
    )


def build_gathering(
    spec: RunSpec,
    gather: Gather,
    receiver: Receiver,
    make_adding: MakeAdding,
    model: torch.nn.Module,
    progress: Progress,
    gauges: memoryview[int],
    actor_gauges: Sequence[memoryview[int]],
    spans: Spans | None = None,
    now_ns: Clock = time.monotonic_ns,
) -> Gathering:
    if spans is not None:
        receiver = trace_receiver(receiver, spans)
    times = times_of(spec, num_parameters(model))
    closing = 0.0 if times is None else closing_s(times, gather.rule)
    rule = build_rule(gather, spec.plan.num_actors)
    return Gathering(
        GatherPlan(
            num_parameters(model),
            gather.absent_after_s,
            closing,
            calls_absent=gather.realisation == "all-reduce",
        ),
        receiver,
        rule,
        make_adding(rule, num_parameters(model)),
        progress,
        gauges,
        actor_gauges,
        now_ns,
    )


def times_of(spec: RunSpec, num_parameters: int) -> Times | None:
    """The times that gradients shall take; None where they take what they take.

    Under the virtual clock there must be some: without a law everybody takes what its rows cost by
    the table of that engine.
    """
    config, plan = spec.config.times, spec.plan
    if config.law == "none" and spec.config.engine != "virtual":
        return None
    if config.law == "none":
        gradient_s = costs_of(plan, None).row.alone_s * plan.num_rows
        config = config.model_copy(update={"unit_s": gradient_s})
    return Times(config, plan.num_actors, num_parameters, spec.config.seed)


def timing_of(spec: RunSpec, actor: int, num_parameters: int) -> Timing | None:
    gather, times = gather_of(spec), times_of(spec, num_parameters)
    return Timing(times, actor, gather.rule) if gather and times else None


def num_parameters(model: torch.nn.Module) -> int:
    return len(flatten(model).vector_P)
