"""Builds roles from a config and a plan, the same in every engine; only the channels differ."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from tianji.actor.assembler import ActorOrders, Assembler, Inference
from tianji.actor.episodes import FreshEpisodes, ItemEpisodes, OngoingEpisodes, OngoingPlan
from tianji.actor.gradients import GradientAssembler, GradientPlan
from tianji.actor.role import Actor, ActorPlan
from tianji.actor.served import ServedInference
from tianji.actor.unrolls import UnrollAssembler
from tianji.algorithms.interface import Acting, Gather, QueueCadence, ReplayCadence
from tianji.algorithms.registry import load_algorithm
from tianji.balance.given_times import closing_s
from tianji.buffer.gather.gate import GatherGate, GatherPlan
from tianji.buffer.gather.rules import build_rule
from tianji.buffer.interface import Gate, Progress, Store
from tianji.buffer.role import Buffer
from tianji.buffer.stores.pool import Pool
from tianji.buffer.stores.queue import Queue
from tianji.buffer.stores.sums import Sums
from tianji.channels.gauges import Gauge
from tianji.channels.interface import BoardReader, Receiver, Sender
from tianji.channels.layout import Layout
from tianji.channels.orders import ActorRows, BufferRows
from tianji.channels.requests import Asker
from tianji.config.seeding import seed_for
from tianji.engines.assembly.gates import build_queue_gate, build_replay_gate
from tianji.engines.assembly.gradients import (
    MakeAdding,
    OpenContributions,
    build_estimator,
    gather_of,
    is_all_reduce,
    num_parameters,
    times_of,
    timing_of,
)
from tianji.engines.assembly.model import acting_model
from tianji.engines.assembly.recording import record_rows
from tianji.engines.assembly.replay import OpenMemory, build_replay
from tianji.engines.spec import RunSpec
from tianji.envs.build import build_world
from tianji.envs.mending import EnvFailures
from tianji.models.tensors import Snapshot
from tianji.programs.program import Role
from tianji.trace.parts import (
    trace_acting,
    trace_reader,
    trace_receiver,
    trace_sender,
    trace_store,
    trace_world,
)
from tianji.trace.spans import Spans, open_spans
from tianji.types import Clock

OpenSender = Callable[[], Sender]
"""Opens an actor's end of its lane; an actor that has opened it is ready to work."""
Serve = Callable[[Acting], Asker]
"""Lets a server evaluate the network of an acting side."""


def spans_of(spec: RunSpec, role: Role) -> Spans | None:
    """Return the writer of this role's spans; None when no trace was asked for."""
    if not spec.config.observe.trace:
        return None
    return open_spans(spec.run_dir, role.name, thread=role.thread)


def build_actor(
    spec: RunSpec,
    index: int,
    open_sender: OpenSender,
    policy: BoardReader,
    rows: ActorRows,
    spans: Spans | None = None,
    now_ns: Clock = time.monotonic_ns,
    on_env_failure: EnvFailures | None = None,
    open_contributions: OpenContributions | None = None,
    serve: Serve | None = None,
) -> Actor:
    """Build an actor. on_env_failure: told of environments that fail and are replaced; without it,
    their errors end the run. open_contributions: its end of the sums, where items are gradients.
    serve: lets a server infer; without it, the actor does."""
    plan, config = spec.plan, spec.config
    model = acting_model(spec, plan.acting_device)
    acting = load_algorithm(config.algorithm.name).build_acting(model, spec.spaces, config)
    env, num_envs = spec.env_of(index), plan.envs_per_actor
    getattr(acting, "take_environments", lambda first: None)(index * num_envs)
    world = build_world(
        env,
        config.env_kwargs,
        num_envs,
        on_env_failure,
        plan.emulator_threads,
        spec.spaces.masked_by,
    )
    asker = None if serve is None else serve(acting)
    if plan.acting_device != "cpu":
        record_rows(spec, acting)
    rows.gauges[Gauge.STARTED_VERSION] = 0  # a predecessor may have left it
    sender = open_sender()
    if spans is not None:
        acting, world = trace_acting(acting, spans), trace_world(world, spans)
        policy, sender = trace_reader(policy, spans), trace_sender(sender, index, spans)
    read = Snapshot(model).read_from
    if asker is None:
        inference = Inference(acting, policy, read)
    else:
        inference = ServedInference(acting, policy, read, asker)
    assembler = _build_assembler(spec, index, model, inference, rows, now_ns, open_contributions)
    parts = world, inference, assembler, sender, rows, now_ns
    observed = Layout.from_json(plan.layout).observed()
    return Actor(ActorPlan(index, plan.num_rows, observed), *parts)


def _build_assembler(
    spec: RunSpec,
    index: int,
    model: torch.nn.Module,
    inference: Inference,
    rows: ActorRows,
    now_ns: Clock,
    open_contributions: OpenContributions | None,
) -> Assembler:
    orders, gather = ActorOrders(rows), gather_of(spec)
    if gather is None:
        return UnrollAssembler(_ongoing(spec, index), inference, orders, now_ns)
    assert open_contributions is not None, "gradients are added up somewhere"
    size, first_row = num_parameters(model), spec.plan.lookahead - 1
    times_rows = spec.config.times.per == "step"
    return GradientAssembler(
        GradientPlan(spec.plan.num_rows - first_row, times_rows),
        inference,
        build_estimator(spec, gather, model, index),
        _episodes(spec, gather, index),
        open_contributions(size),
        orders,
        rows.gauges,
        now_ns,
        timing_of(spec, gather, index, size),
    )


def _episodes(spec: RunSpec, gather: Gather, index: int) -> ItemEpisodes:
    if not gather.fresh:
        return _ongoing(spec, index)
    return FreshEpisodes(seed_for(spec.config.seed, "actor", spec.number_of(index)))


def _ongoing(spec: RunSpec, index: int) -> OngoingEpisodes:
    plan, config = spec.plan, spec.config
    # Those of other learners make as many: schedules run over the steps of all.
    steps_per_round = config.num_learners * plan.num_actors * plan.steps_per_unroll
    seed = seed_for(config.seed, "actor", spec.number_of(index))
    layout = Layout.from_json(plan.layout)
    return OngoingEpisodes(
        OngoingPlan(
            plan.lookahead - 1, steps_per_round, seed, layout.row_names(), layout.observed()
        )
    )


def build_buffer(
    spec: RunSpec,
    receiver: Receiver,
    open_replay: OpenMemory,
    progress: Progress,
    rows: BufferRows,
    spans: Spans | None = None,
    now_ns: Clock = time.monotonic_ns,
    make_adding: MakeAdding | None = None,
    model_size: int = 0,
) -> Buffer:
    """Build the buffer of any algorithm. make_adding, model_size: how sums come together and how
    many parameters they have, where items are gradients."""
    if spans is not None:
        receiver = trace_receiver(receiver, spans)
    rest = receiver, rows, now_ns
    gate: Gate
    store: Store
    match load_algorithm(spec.config.algorithm.name).cadence(spec.config):
        case Gather() as gather:
            assert make_adding is not None, "gradients are added up somewhere"
            rule = build_rule(gather, spec.plan.num_actors)
            adding = make_adding(rule, model_size)
            gate = GatherGate(_gather_plan(spec, gather, model_size), rule, adding, *rest)
            sampled = None if gather.memory is None else gather.memory.batch_size
            store = Sums(gate, sampled)
        case QueueCadence() as queue:
            gate = build_queue_gate(spec, queue, *rest)
            store = _build_queue(spec, receiver, queue.pool_batches)
        case ReplayCadence() as replay:
            gate = build_replay_gate(spec, *rest)
            seed = seed_for(spec.config.seed, "store", spec.group)
            store = build_replay(spec, receiver, open_replay, replay, seed)
    if spans is not None:
        store = trace_store(store, spans)
    return Buffer(gate, store, progress, first_row=spec.plan.lookahead - 1)


def _gather_plan(spec: RunSpec, gather: Gather, model_size: int) -> GatherPlan:
    times = times_of(spec, model_size)
    return GatherPlan(
        model_size,
        gather.absent_after_s,
        closing_s=0.0 if times is None else closing_s(times, gather.rule),
        calls_absent=is_all_reduce(gather),
        max_lag=gather.max_lag,
    )


def _build_queue(spec: RunSpec, receiver: Receiver, pool_batches: int) -> Store:
    env_axes = Layout.from_json(spec.plan.layout).env_axes()
    if pool_batches == 1:
        return Queue(receiver, env_axes)
    per_version = spec.plan.unrolls_per_version
    seed = seed_for(spec.config.seed, "store", spec.group)
    return Pool(receiver, env_axes, pool_batches * per_version, per_version, seed)
