"""Roles without their work: they take grants, pass time, and hand over stamps.

Buffer and learner are the real ones. What they work on is replaced: unrolls without observations,
a store that only counts, an update that computes nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tianji.algorithms.interface import Minibatch
from tianji.channels.gauges import Activity, Gauge
from tianji.channels.interface import Grant, Receiver, Sender
from tianji.channels.orders import ActorRows, Order
from tianji.costs.work import Work
from tianji.types import Array, Batch, Clock, Stamp
from tianji.virtual.clock import Action


@dataclass(frozen=True, slots=True)
class Pace:
    """How a simulated actor works."""

    unroll: Work
    """One whole unroll."""
    num_slices: int
    """It looks around so many times during one, and gives way where cores are short."""
    steps_per_unroll: int
    can_be_short: bool
    """It hands over what it has when it is asked to hurry."""

    def slice(self) -> Work:
        """The work between two looks."""
        unroll, count = self.unroll, self.num_slices
        return Work(unroll.alone_s / count, unroll.cpu_s / count, unroll.strain)


class SimulatedActor:
    """Works as long as an actor does and sends what it would say about itself."""

    def __init__(
        self,
        index: int,
        pace: Pace,
        sender: Sender,
        version: Callable[[], int],
        rows: ActorRows,
        now_ns: Clock,
    ) -> None:
        """version: the newest policy on this actor's machine, -1 before the first."""
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

    def spend(self, took_ns: int) -> None:
        self._gauges[Gauge.BUSY_NS] += took_ns

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


class CountingStore:
    """A batch is what was put since the last one; the slots go back when it has been used. For a
    replay store this is the same: what it samples from costs memory, and no time."""

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
        return Batch({}, stamps, num_items=len(stamps), num_steps=steps)

    def finish(self, batch: Batch, priorities: Array | None = None) -> int:
        for slot, _ in self._held:
            self._receiver.release(slot)
        self._held.clear()
        return batch.num_steps

    def metrics(self) -> dict[str, float]:
        return {}

    def state(self) -> dict[str, Any]:
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        """Nothing was kept."""


def _compute_nothing() -> Any:
    return None


class CountingUpdate:
    """So many optimiser steps for every batch, which cost only time."""

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


class Gateway:
    """Takes what lies at a machine's border and hands it on, one at a time."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self.hand_on: Callable[[Action], None]
        """Where a message goes, after the time that it takes."""
        self.inbox: deque[Action] = deque()

    def tick(self) -> Work | None:
        if not self.inbox:
            return None
        self.hand_on(self.inbox.popleft())
        return self._work

    def spend(self, took_ns: int) -> None:
        """Nobody asks."""
