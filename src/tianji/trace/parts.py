"""The parts that roles are built from, wrapped so that their calls are recorded.

Without --trace none of this is used: roles are built from the bare parts, and no loop tests for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar, cast

from tianji.algorithms.interface import Acting, Minibatch, Update
from tianji.buffer.interface import Store
from tianji.channels.interface import (
    Batches,
    BoardReader,
    BoardWriter,
    Bytes,
    Grant,
    Receiver,
    Sender,
)
from tianji.channels.memory import Bell
from tianji.envs.interface import World
from tianji.trace.spans import NOTHING, Kind, Spans, item_id
from tianji.types import Batch, Stamp

T = TypeVar("T")
B = TypeVar("B", bound=Batches)
_clock_ns = time.monotonic_ns


class Traced:
    """A part with some of its methods replaced; everything else is the part's own."""

    def __init__(self, part: object, replaced: Mapping[str, Callable[..., Any]]) -> None:
        self.__dict__.update(replaced)
        self._part = part

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._part, name)
        if callable(found):
            self.__dict__[name] = found  # methods do not change: look them up once
        return found


def _with(part: T, **replaced: Callable[..., Any]) -> T:
    return cast(T, Traced(part, replaced))


def _timed(part: object, spans: Spans, **kinds: Kind) -> dict[str, Callable[..., Any]]:
    """Return these methods, each call recorded as a span about the subject in work."""
    return {name: spans.timed(getattr(part, name), kind) for name, kind in kinds.items()}


def trace_acting(acting: Acting, spans: Spans) -> Acting:
    kinds = {"act": Kind.INFER, "finish": Kind.INFER, "greedy": Kind.INFER}
    if getattr(acting, "runs_alone", False):
        kinds |= {"submit": Kind.INFER, "collect": Kind.INFER}
    begin = spans.closing(acting.begin, Kind.BEGIN)
    return _with(acting, begin=begin, **_timed(acting, spans, **kinds))


def trace_world(world: World, spans: Spans) -> World:
    return _with(world, **_timed(world, spans, step=Kind.STEP, recv=Kind.STEP, reset=Kind.STEP))


def trace_reader(policy: BoardReader, spans: Spans) -> BoardReader:
    def latest(read: Callable[[Bytes], None]) -> int:
        start_ns = _clock_ns()
        version = policy.latest(read)
        spans.add(Kind.PICK_UP, start_ns, _clock_ns(), version)
        return version

    return _with(policy, latest=latest)


def trace_lanes(lanes: T, spans: Spans) -> T:
    """lanes: anything with a method `evaluate`, as a server has."""
    return _with(lanes, **_timed(lanes, spans, evaluate=Kind.INFER))


def trace_sender(sender: Sender, actor: int, spans: Spans) -> Sender:
    def reserve() -> Grant | None:
        start_ns = _clock_ns()
        grant = sender.reserve()
        if grant is None:
            spans.idle = Kind.WAIT if sender.is_waiting() else Kind.PACED
            return None
        spans.subject = item_id(actor, grant.round)
        spans.add_rest(Kind.BEGIN, start_ns, spans.subject)
        return grant

    return _with(sender, reserve=reserve, send=spans.closing(sender.send, Kind.SEND))


def trace_bell(bell: Bell, spans: Spans) -> Bell:
    def wait(timeout_s: float) -> bool:
        start_ns = _clock_ns()
        rung = bell.wait(timeout_s)
        spans.add(spans.idle, start_ns, _clock_ns(), NOTHING)
        spans.idle = Kind.WAIT
        return rung

    return _with(bell, wait=wait)


def trace_receiver(receiver: Receiver, spans: Spans) -> Receiver:
    started_ns = 0

    def take() -> int | None:
        nonlocal started_ns
        start_ns = _clock_ns()
        slot = receiver.take()
        if slot is not None:
            started_ns = start_ns
        return slot

    def stamp(slot: int) -> Stamp:
        """Record the arrival here: the stamp says which item it is, and is read once for each."""
        nonlocal started_ns
        start_ns, started_ns = started_ns or _clock_ns(), 0
        found = receiver.stamp(slot)
        spans.add_rest(Kind.RECEIVE, start_ns, item_id(found.actor, found.round))
        return found

    return _with(receiver, take=take, stamp=stamp)


def trace_store(store: Store, spans: Spans) -> Store:
    def put(slot: int, stamp: Stamp) -> int:
        spans.mark(Kind.STORED, _clock_ns(), item_id(stamp.actor, stamp.round))
        return store.put(slot, stamp)

    return _with(store, put=put)


def trace_batches(batches: B, spans: Spans) -> B:
    def take() -> Batch | None:
        start_ns = _clock_ns()
        batch = batches.take()
        if batch is not None:
            spans.add_rest(Kind.TAKE, start_ns, NOTHING)
        return batch

    return _with(batches, take=take)


def trace_update(update: Update, spans: Spans) -> Update:
    def minibatches(batch: Batch, progress: float) -> Iterator[Minibatch]:
        fresh = batch.stamps
        start_ns = _clock_ns()

        def step() -> None:
            nonlocal fresh
            minibatch.step()
            spans.add(Kind.UPDATE, start_ns, _clock_ns(), spans.subject)
            for stamp in fresh:
                spans.mark(Kind.USED, start_ns, item_id(stamp.actor, stamp.round))
            fresh = ()

        for minibatch in update.minibatches(batch, progress):
            yield Minibatch(minibatch.gradient, step)
            start_ns = _clock_ns()

    return _with(update, minibatches=minibatches)


def trace_writer(policy: BoardWriter, spans: Spans) -> BoardWriter:
    def post(version: int, write: Callable[[Bytes], None]) -> None:
        start_ns = _clock_ns()
        policy.post(version, write)
        spans.add(Kind.PUBLISH, start_ns, _clock_ns(), version)
        spans.subject = version + 1  # the version that the following updates lead to

    return _with(policy, post=post)


def trace_checkpoints(checkpoints: T, spans: Spans) -> T:
    """checkpoints: anything with a method `save`."""
    return _with(checkpoints, **_timed(checkpoints, spans, save=Kind.SAVE))
