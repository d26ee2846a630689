"""Roles from a config and a plan, the same in every engine; only the channels differ."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence

import numpy as np
import torch

from tianji.actor.role import Actor, ActorPlan
from tianji.algorithms.registry import load_algorithm
from tianji.balance.set_point import SetPoint
from tianji.buffer.interface import Store
from tianji.buffer.pool import Pool
from tianji.buffer.queue import Queue
from tianji.buffer.replay import Replay
from tianji.buffer.role import Buffer, BufferPlan
from tianji.channels.interface import BoardReader, Receiver, Sender
from tianji.channels.layout import Layout
from tianji.channels.reports import Reports
from tianji.engines.env_failures import EnvFailures
from tianji.engines.spec import RunSpec
from tianji.envs.build import build_world
from tianji.envs.interface import World
from tianji.evaluator.role import Evaluator
from tianji.learner.progress import Progress
from tianji.models.flat import Snapshot
from tianji.records import EvaluationReport
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

REPLAY_AUTO_SAVE_BYTES = 256 << 20  # copied in a few hundredths of a second
_SEED_SPACE = {"model": 0, "actor": 1, "store": 2, "evaluator": 4}


def seed_for(root: int, kind: str, index: int = 0) -> int:
    """The only way seeds are derived from the root seed."""
    sequence = np.random.SeedSequence(root, spawn_key=(_SEED_SPACE[kind], index))
    return int(sequence.generate_state(1, np.uint64)[0] >> 1)


def build_model(spec: RunSpec) -> torch.nn.Module:
    """The same initial weights in every process, whatever its threads: an orthogonal matrix from
    two threads differs in its last bits from that of one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(seed_for(spec.config.seed, "model"))
    model = load_algorithm(spec.config.algorithm.name).build_model(spec.spaces, spec.config)
    torch.set_num_threads(threads)
    return model


def spans_of(spec: RunSpec, role: str) -> Spans | None:
    """Where this role's spans go; None when no trace was asked for."""
    return open_spans(spec.run_dir, role) if spec.config.observe.trace else None


def build_actor_world(
    spec: RunSpec, index: int, gauges: memoryview[int], reports: Reports | None
) -> World:
    """The environments of an actor. reports: told of those that fail and are replaced; without it
    an error of an environment goes on."""
    num_envs, on_failure = spec.plan.envs_per_actor, None
    if reports is not None:
        on_failure = EnvFailures(f"actor-{index}", num_envs, gauges, reports)
    return build_world(spec.env_of(index), spec.config.env_kwargs, num_envs, on_failure)


def build_actor(
    spec: RunSpec,
    index: int,
    sender: Sender,
    policy: BoardReader,
    gauges: memoryview[int],
    spans: Spans | None = None,
    now_ns: Clock = time.monotonic_ns,
    reports: Reports | None = None,
) -> Actor:
    plan, config = spec.plan, spec.config
    model = build_model(spec)
    acting = load_algorithm(config.algorithm.name).build_acting(model, spec.spaces, config)
    world = build_actor_world(spec, index, gauges, reports)
    if spans is not None:
        acting, world = trace_acting(acting, spans), trace_world(world, spans)
        policy, sender = trace_reader(policy, spans), trace_sender(sender, index, spans)
    return Actor(
        ActorPlan(
            index=index,
            num_actors=plan.num_actors,
            num_rows=plan.num_rows,
            lookahead=plan.lookahead,
            steps_per_unroll=plan.steps_per_unroll,
            seed=seed_for(config.seed, "actor", index),
            row_names=Layout.from_json(plan.layout).row_names(),
        ),
        world=world,
        acting=acting,
        read_policy=Snapshot(model).read_from,
        policy=policy,
        sender=sender,
        gauges=gauges,
        now_ns=now_ns,
    )


def build_buffer(
    spec: RunSpec,
    receiver: Receiver,
    progress: Progress,
    gauges: memoryview[int],
    actor_gauges: Sequence[memoryview[int]],
    spans: Spans | None = None,
    now_ns: Clock = time.monotonic_ns,
) -> Buffer:
    plan = spec.plan
    store = _build_store(spec, receiver)
    if spans is not None:
        receiver, store = trace_receiver(receiver, spans), trace_store(store, spans)
    point = SetPoint(plan.unrolls_per_version, plan.warmup_unrolls, plan.lag_target)
    return Buffer(
        BufferPlan(point, plan.max_lag, first_row=plan.lookahead - 1, may_park=plan.shares_cores),
        receiver=receiver,
        store=store,
        progress=progress,
        gauges=gauges,
        actor_gauges=actor_gauges,
        now_ns=now_ns,
    )


def _build_store(spec: RunSpec, receiver: Receiver) -> Store:
    cadence = load_algorithm(spec.config.algorithm.name).cadence(spec.config)
    if cadence.store == "queue":
        return _build_queue(spec, receiver, cadence.pool_batches)
    items = round(cadence.ratio * cadence.steps_per_version)
    return Replay(
        receiver,
        capacity=spec.plan.replay_unrolls,
        unroll_length=cadence.unroll_length,
        lookahead=cadence.lookahead,
        ratio=cadence.ratio,
        warmup_unrolls=spec.plan.warmup_unrolls,
        minibatch=items // cadence.num_updates,
        gamma=spec.config.algorithm.gamma,
        seed=seed_for(spec.config.seed, "store"),
        save_items=_saves_replay(spec),
    )


def _build_queue(spec: RunSpec, receiver: Receiver, pool_batches: int) -> Store:
    env_axes = Layout.from_json(spec.plan.layout).env_axes()
    if pool_batches == 1:
        return Queue(receiver, env_axes)
    per_version = spec.plan.unrolls_per_version
    seed = seed_for(spec.config.seed, "store")
    return Pool(receiver, env_axes, pool_batches * per_version, per_version, seed)


def _saves_replay(spec: RunSpec) -> bool:
    asked = spec.config.checkpoint.replay
    if asked != "auto":
        return asked
    needed = spec.plan.replay_unrolls * spec.plan.slot_bytes
    kept = spec.config.checkpoint.keep_last + 2  # the best one, and the one being written
    free = shutil.disk_usage(spec.run_dir).free
    return needed <= REPLAY_AUTO_SAVE_BYTES and kept * needed <= free


def build_evaluator(
    spec: RunSpec,
    policy: BoardReader,
    gauges: memoryview[int],
    reports: Reports,
    spans: Spans | None = None,
    now_ns: Clock = time.monotonic_ns,
) -> Evaluator:
    model = build_model(spec)
    acting = load_algorithm(spec.config.algorithm.name).build_acting(
        model, spec.spaces, spec.config
    )
    kwargs = spec.config.env_kwargs
    worlds = {name: build_world(env, kwargs, 1) for name, env in spec.tasks.items()}
    if spans is not None:
        worlds = {name: trace_world(world, spans) for name, world in worlds.items()}
        acting, policy = trace_acting(acting, spans), trace_reader(policy, spans)
    return Evaluator(
        spec.config.evaluate,
        seed_for(spec.config.seed, "evaluator") % 2**31,
        worlds,
        acting,
        Snapshot(model).read_beginning,
        policy,
        gauges,
        lambda record: reports(
            EvaluationReport(kind="evaluation", role="evaluator", record=record)
        ),
        now_ns,
    )
