"""Roles that only cost time: they take grants, pass time, and send stamps.

Buffer and learner are the real ones. Their parts are replaced: items without content, stores and
sums that only count, an update that computes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tianji.algorithms.interface import Minibatch
from tianji.balance.gradient_timing import Timing
from tianji.buffer.gather.rules import GatherRule
from tianji.channels.gauges import Activity, Gauge
from tianji.channels.interface import Contribution, Grant, Receiver, Sender
from tianji.channels.orders import ActorRows, Order
from tianji.costs.work import Work
from tianji.types import Array, Batch, Clock, Stamp
from tianji.virtual.node import Job


@dataclass(frozen=True, slots=True)
class Pace:
    """The speed of a simulated actor."""

    unroll: Work
    """The work of one unroll."""
    num_slices: int
    """Ticks of one unroll: between two of them an actor may give way or hear that it is late."""
    steps_per_unroll: int
    can_be_short: bool
    """It sends what it has when it is asked to hurry."""

    def slice(self) -> Work:
        """Return the work of one tick."""
        unroll, count = self.unroll, self.num_slices
        return Work(unroll.alone_s / count, unroll.cpu_s / count, unroll.strain)


class SimulatedUnrolls(Job):
    """An actor of unrolls: works as long as a real one and sends the same stamps."""

    def __init__(
        self,
        index: int,
        pace: Pace,
        sender: Sender,
        version: Callable[[], int],
        rows: ActorRows,
        now_ns: Clock,
    ) -> None:
        """version: returns the newest policy on this actor's machine, -1 before the first."""
        super().__init__(rows.gauges)
        self._index = index
        self._pace = pace
        self._slice = pace.slice()
        self._sender = sender
        self._version = version
        self._gauges, self._orders = rows.gauges, rows.orders
        self._now_ns = now_ns
        self._grant: Grant | None = None
        self._done = 0
        self._oldest = -1
        self._started_ns = 0

    def tick(self) -> Work | None:
        if self._grant is None and not self._begin():
            return None
        if self._done and self._is_hurried():
            self._finish()
            return Work(0.0, 0.0, 1.0)
        self._done += 1
        if self._done == self._pace.num_slices:
            self._finish()
        return self._slice

    def _begin(self) -> bool:
        version = self._version()
        if version < 0:
            return False
        grant = self._sender.reserve()
        if grant is None:
            self._gauges[Gauge.ACTIVITY] = Activity.PACED
            return False
        self._gauges[Gauge.ACTIVITY] = Activity.ACTING
        self._gauges[Gauge.STARTED_VERSION] = version + 1
        self._grant, self._oldest, self._done = grant, version, 0
        self._started_ns = self._now_ns()
        return True

    def _is_hurried(self) -> bool:
        assert self._grant is not None
        return self._pace.can_be_short and self._orders[Order.HURRY] > self._grant.round

    def _finish(self) -> None:
        assert self._grant is not None
        steps = self._pace.steps_per_unroll * self._done // self._pace.num_slices
        stamp = Stamp(
            self._index, self._grant.round, self._oldest, self._version(), steps,
            self._started_ns, self._now_ns(),
        )  # fmt: skip
        self._sender.send(self._grant.slot, stamp)
        self._grant = None
        self._gauges[Gauge.STARTED_VERSION] = 0
        self._gauges[Gauge.STEPS] += steps
        self._gauges[Gauge.ITEMS] += 1


class SimulatedGradients:
    """An actor of gradients in given times (jobs.TimedActor)."""

    def __init__(
        self,
        index: int,
        num_steps: int,
        timing: Timing,
        sender: Sender,
        version: Callable[[], int],
        rows: ActorRows,
        now_ns: Clock,
    ) -> None:
        """num_steps: environment steps of one gradient."""
        self._index = index
        self._num_steps = num_steps
        self._timing = timing
        self._sender = sender
        self._newest = version
        self._gauges, self._orders = rows.gauges, rows.orders
        self._now_ns = now_ns
        self._since_ns = now_ns()
        self._version = -1
        self._grant: Grant | None = None
        self._started_ns = 0
        self._count = 0
        """Gradients sent at this version."""
        self.posted = Contribution(-1, 0)
        """What was sent last: a version and the number of gradients at it."""
        self.is_working = False
        self.due_ns = 0

    def is_wanted(self) -> bool:
        return self._orders[Order.CLOSED] <= self._version

    def begin(self) -> bool:
        if self.is_working:
            self.is_working = False
            self._gauges[Gauge.DISCARDED] += self._now_ns() > self._started_ns
        version = self._newest()
        if version < 0 or self._orders[Order.CLOSED] > version:
            return False
        self._grant = self._grant or self._sender.reserve()
        if self._grant is None:
            return False
        if version != self._version:
            self._version, self._count = version, 0
        self._started_ns = self._now_ns()
        self._timing.begin(version, self._started_ns, self._since_ns)
        self.due_ns = self._timing.due_ns(self._num_steps)
        self.is_working = True
        return True

    def tick(self) -> bool:
        """Send the gradient."""
        assert self._grant is not None, "an item in work has a slot"
        self._count += 1
        self.posted = Contribution(self._version, self._count)
        stamp = Stamp(
            self._index, self._grant.round, self._version, self._version, self._num_steps,
            self._started_ns, self._now_ns(),
        )  # fmt: skip
        self._sender.send(self._grant.slot, stamp)
        self._grant = None
        self.is_working = False
        return True


class CountedSums:
    """The sums of simulated gradients: only their counts (buffer.adding.Adding)."""

    def __init__(self, rule: GatherRule, actors: Sequence[SimulatedGradients]) -> None:
        self._rule = rule
        self._actors = actors

    def add_up(self, version: int, actors: Iterable[int], sum_P: Array) -> list[int]:
        posted = {a: self._actors[a].posted for a in sorted(actors) if self._rule.takes(a)}
        counts = [0] * len(self._actors)
        for actor, sent in posted.items():
            counts[actor] = sent.num_gradients if sent.version == version else 0
        return counts

    def news(self) -> list[str]:
        return []


class CountingStore:
    """Keeps slots until a batch of them has been used. It stands for a replay store too: what that
    samples from costs memory, but no time."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._held: list[tuple[int, Stamp]] = []

    def put(self, slot: int, stamp: Stamp) -> int:
        self._held.append((slot, stamp))
        return 1

    def num_held(self) -> int:
        return len(self._held)

    def take(self, version: int) -> Batch:
        stamps = tuple(stamp for _, stamp in self._held)
        steps = sum(stamp.env_steps for stamp in stamps)
        return Batch({}, stamps, num_items=len(stamps), num_steps=steps, unique_steps=steps)

    def finish(self, batch: Batch, priorities: Array | None = None) -> None:
        for slot, _ in self._held:
            self._receiver.release(slot)
        self._held.clear()

    def metrics(self) -> dict[str, float]:
        return {}

    def state(self) -> dict[str, Any]:
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        """Nothing was kept."""


def _compute_nothing() -> Any:
    return None


class CountingUpdate:
    """The optimiser steps of a batch, which only cost time."""

    def __init__(self, num_updates: int, trained_steps_per_version: int) -> None:
        self._num_updates = num_updates
        self._steps = trained_steps_per_version // num_updates

    def minibatches(self, batch: Batch, progress: float) -> Iterator[Minibatch]:
        for _ in range(self._num_updates):
            yield Minibatch(_compute_nothing, _compute_nothing)

    def metrics(self) -> Mapping[str, float]:
        return {}

    def minibatch_steps(self, batch: Batch) -> int:
        return self._steps

    def state(self) -> dict[str, Any]:
        return {}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Nothing was kept."""
