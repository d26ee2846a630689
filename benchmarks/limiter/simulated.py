"""A simulated run that is disturbed: the real buffer, gate and learner on the virtual clock.

Actors and learner only cost time, as much as those of benchmarks/disturbances, and their speeds can
be changed while they run. Every unroll takes a little more or less time than the others, by a seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.disturbances.tape import Sample, Tape, Told
from tianji.balance.samples_per_insert import (
    Groups,
    Limits,
    check_limits,
    limits_around,
    usual_error_buffer,
)
from tianji.balance.set_point import SetPoint
from tianji.buffer.interface import Gate, Store
from tianji.buffer.rate_limited import QueueTable, RateLimited, RateLimitedPlan, ReplayTable
from tianji.buffer.stores.queue import Queue
from tianji.buffer.window import RatioWindow, WindowPlan
from tianji.channels.gauges import Gauge
from tianji.channels.interface import Receiver
from tianji.channels.layout import STANDARD_FIELDS, Layout
from tianji.channels.orders import BufferRows, Order
from tianji.costs.work import Work
from tianji.types import Batch, Clock, Stamp
from tianji.virtual.channels import VirtualStream
from tianji.virtual.cluster import Machines
from tianji.virtual.costs import LearnerParts
from tianji.virtual.node import IDLE_NS, Job
from tianji.virtual.roles import Pace, SimulatedUnrolls
from tianji.virtual.simulated_group import CountingUpdate, SimulatedGroup

NUM_ACTORS = 4
UNROLL_STEPS = 16
UNROLL_ROWS = 8
UNROLL_S = 0.0168
UNEVEN = 0.3
"""An unroll takes up to this share more or less time than UNROLL_S."""
UNROLLS_PER_VERSION = 4
STEPS_PER_VERSION = UNROLLS_PER_VERSION * UNROLL_STEPS
PARTS = LearnerParts(receive_s=50e-6, update_s=0.0055, publish_s=100e-6, num_updates=4)
REPLAY_RATIO = 8.0
WARMUP_UNROLLS = 64
KEPT_STEPS = 10_000
"""Steps of one actor that the replay store keeps."""
SAMPLE_PERIOD_NS = 50_000_000
START_UP_NS = 3_000_000_000
NUM_SLOTS = 512


@dataclass
class Speeds:
    """How many times slower than usual the environments and the learner are."""

    environments: float = 1.0
    learner: float = 1.0

    def set(self, environments: float = 1.0, learner: float = 1.0) -> None:
        self.environments, self.learner = environments, learner


def _slowed(work: Work, factor: float) -> Work:
    return Work(work.alone_s * factor, work.cpu_s * factor, work.strain)


class SlowedActor(Job):
    """A simulated actor whose speed changes, and that may die."""

    def __init__(self, make: Callable[[], SimulatedUnrolls], speeds: Speeds, seed: str) -> None:
        self._make = make
        self._inner = make()
        super().__init__(*self._inner.rows)
        self._speeds = speeds
        self._random = random.Random(seed)
        self.is_alive = True

    def tick(self) -> Work | None:
        work = self._inner.tick() if self.is_alive else None
        if work is None:
            return None
        return _slowed(
            work, self._speeds.environments * self._random.uniform(1 - UNEVEN, 1 + UNEVEN)
        )

    def start_again(self) -> None:
        self.rows[0][Gauge.STARTED_VERSION] = 0
        self._inner = self._make()
        self.is_alive = True


@dataclass(frozen=True)
class SlowedParts(LearnerParts):
    """The costs of a learner whose speed changes."""

    speeds: Speeds = field(default_factory=Speeds)

    def work(self, num_received: int, num_updates: int, num_published: int) -> Work:
        return _slowed(super().work(num_received, num_updates, num_published), self.speeds.learner)


class _Stream(VirtualStream):
    """Lanes whose actor died have no sender until its successor is there."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]  # those of VirtualStream
        self.missing: set[int] = set()

    def is_attached(self, lane: int) -> bool:
        return lane not in self.missing


class CountingReplay(Store):
    """A replay store that only counts: what enters it leaves its slot at once."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._num_put = 0

    def put(self, slot: int, stamp: Stamp) -> int:
        self._receiver.release(slot)
        self._num_put += 1
        return stamp.env_steps if self._num_put > WARMUP_UNROLLS else 0

    def num_held(self) -> int:
        return self._num_put

    def take(self, version: int) -> Batch:
        count = round(REPLAY_RATIO * STEPS_PER_VERSION)
        return Batch({}, (), count, num_steps=count, unique_steps=0)


BuildGate = Callable[[Receiver, BufferRows, Clock], Gate]


@dataclass(frozen=True)
class Contestant:
    """A way to keep actors and learner in step, for one kind of store."""

    store: str
    name: str
    build_gate: BuildGate

    def build_store(self, receiver: Receiver) -> Store:
        return CountingReplay(receiver) if self.store == "replay" else Queue(receiver, {})


def paced(store: str, lag_target: int, max_lag: int | None = None) -> Contestant:
    """TianJi's balance; the set-point is the bound too where no other is given."""
    warmup = WARMUP_UNROLLS if store == "replay" else 0
    point = SetPoint(UNROLLS_PER_VERSION, warmup, lag_target)
    plan = WindowPlan(point, max_lag or lag_target, stores_copies=store == "replay")
    name = f"balance, set-point {lag_target}" + (f" of at most {max_lag}" if max_lag else "")
    return Contestant(store, name, lambda *rest: RatioWindow(plan, *rest))


def limited(store: str, times_wider: float = 1.0) -> Contestant:
    """Reverb's limiter with the error buffer of Acme, or one that is so many times as wide."""
    name = "limiter" if times_wider == 1 else f"limiter, {times_wider:g} x as wide"
    if store == "replay":
        min_size = (WARMUP_UNROLLS + UNROLLS_PER_VERSION) * UNROLL_STEPS
        groups = Groups(UNROLL_STEPS, round(REPLAY_RATIO * STEPS_PER_VERSION))
        plan = _plan(REPLAY_RATIO, min_size, groups, times_wider)
        return Contestant(
            store,
            name,
            lambda *rest: RateLimited(plan, ReplayTable(NUM_ACTORS, KEPT_STEPS), *rest),
        )
    plan = _plan(1.0, UNROLLS_PER_VERSION, Groups(1, UNROLLS_PER_VERSION), times_wider)
    return Contestant(store, name, lambda *rest: RateLimited(plan, QueueTable(), *rest))


def _plan(ratio: float, min_size: int, groups: Groups, times_wider: float) -> RateLimitedPlan:
    limits = limits_around(ratio, min_size, usual_error_buffer(ratio, min_size, groups))
    # A wider window lets actors run further ahead; the learner is never further behind.
    width = times_wider * (limits.max_diff - limits.min_diff)
    limits = Limits(ratio, min_size, limits.min_diff, limits.min_diff + width)
    check_limits(limits, groups)
    return RateLimitedPlan(limits, groups.sampled, groups.inserted)


class SimulatedRun(SimulatedGroup):
    """Four actors and a learner with a core each, and what a script may do to them."""

    def __init__(self, contestant: Contestant, seed: int = 0) -> None:
        super().__init__(NUM_ACTORS, NUM_SLOTS, Machines(cores_per_node=NUM_ACTORS + 1))
        layout = Layout(tuple(STANDARD_FIELDS), num_rows=1, num_envs=1)
        self.lanes = _Stream(layout, NUM_SLOTS, NUM_ACTORS, self.cluster)
        self.stream = self.lanes
        self.speeds = Speeds()
        self.tape = Tape()
        self._actors = [self._add_actor(index, seed) for index in range(NUM_ACTORS)]
        self.start(
            contestant.build_gate(self.lanes, self.rows, self.clock.now_ns),
            contestant.build_store(self.lanes),
            SlowedParts(*_values(PARTS), speeds=self.speeds),
            CountingUpdate(PARTS.num_updates, STEPS_PER_VERSION),
            IDLE_NS,
        )
        self._target = REPLAY_RATIO if contestant.store == "replay" else 1.0
        self._sample()

    def _add_actor(self, index: int, seed: int) -> SlowedActor:
        work = Work(UNROLL_S, UNROLL_S, 1.0)
        pace = Pace(work, UNROLL_ROWS, UNROLL_STEPS, can_be_short=True)
        actor = SlowedActor(
            lambda: SimulatedUnrolls(pace, self.actor_end(index)), self.speeds, f"{seed}-{index}"
        )
        self.cluster.add_actor(actor)
        return actor

    def run_for(self, seconds: float) -> None:
        end_ns = self.clock.now_ns() + round(seconds * 1e9)
        is_over = False

        def end() -> None:
            nonlocal is_over
            is_over = True

        self.clock.at(end_ns, end)
        while not is_over:
            self.clock.step()

    def kill(self, actor: int) -> None:
        """The supervisor sees it at once, and the successor is ready START_UP_NS later."""
        self._actors[actor].is_alive = False
        self.lanes.missing.add(actor)
        self.rows.actors[actor].supervision[Order.RESETS] += 1
        self.rows.supervision[Order.RESETS] += 1
        self.cluster.learner.wake()
        self.clock.after(START_UP_NS, lambda: self._start_again(actor))

    def _start_again(self, actor: int) -> None:
        self._actors[actor].start_again()
        self.lanes.missing.discard(actor)
        self.cluster.learner.wake()

    def _sample(self) -> None:
        gauges, buffer = self.rows.gauges, self.buffer
        actors = [row.gauges for row in self.rows.actors]
        now_s = self.clock.elapsed_s()
        self.tape.samples.append(
            Sample(
                at_s=now_s,
                received_steps=gauges[Gauge.RECEIVED_STEPS],
                sent=sum(row[Gauge.ITEMS] for row in actors),
                received=gauges[Gauge.ITEMS],
                discarded=buffer.discarded,
                blocked=gauges[Gauge.BLOCKED],
                blocked_s=gauges[Gauge.BLOCKED_NS] / 1e9,
            )
        )
        ratio = buffer.items_taken / max(1, buffer.items_put) / self._target - 1
        self.tape.told.append(Told(now_s, tuple(buffer.lag.counts()), ratio))
        self.clock.after(SAMPLE_PERIOD_NS, self._sample, rank=1)


def _values(parts: LearnerParts) -> tuple[float, float, float, int]:
    return parts.receive_s, parts.update_s, parts.publish_s, parts.num_updates
