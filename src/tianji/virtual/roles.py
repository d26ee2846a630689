"""Actors that only cost time: they take grants, pass time, and send stamps of empty items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tianji.balance.given_times import Timing
from tianji.channels.contributions import Contribution
from tianji.channels.gauges import Activity, Gauge
from tianji.channels.interface import Grant, Sender
from tianji.channels.orders import ActorRows, Order
from tianji.costs.work import Work
from tianji.types import Clock, Stamp
from tianji.virtual.node import Job


@dataclass(frozen=True, slots=True)
class Pace:
    """The speed of a simulated actor.

    unroll: the work of one unroll.
    num_slices: ticks of one unroll: between two of them an actor may give way or hear that it is
        late.
    can_be_short: it sends what it has when it is asked to hurry.
    """

    unroll: Work
    num_slices: int
    steps_per_unroll: int
    can_be_short: bool

    def slice(self) -> Work:
        """Return the work of one tick."""
        unroll, count = self.unroll, self.num_slices
        return Work(unroll.alone_s / count, unroll.cpu_s / count, unroll.strain)


@dataclass(frozen=True, slots=True)
class ActorEnd:
    """The ends of a simulated actor's channels.

    version: returns the newest policy on the actor's machine, -1 before the first.
    """

    index: int
    sender: Sender
    version: Callable[[], int]
    rows: ActorRows
    now_ns: Clock

    def send(self, grant: Grant, oldest: int, newest: int, steps: int, started_ns: int) -> None:
        stamp = Stamp(self.index, grant.round, oldest, newest, steps, started_ns, self.now_ns())
        self.sender.send(grant.slot, stamp)


class SimulatedUnrolls(Job):
    """An actor of unrolls: works as long as a real one and sends the same stamps."""

    def __init__(self, pace: Pace, end: ActorEnd) -> None:
        super().__init__(end.rows.gauges)
        self._pace = pace
        self._slice = pace.slice()
        self._end = end
        self._gauges = end.rows.gauges
        self._grant: Grant | None = None
        self._done = self._started_ns = 0
        self._oldest = -1

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
        # The last unroll was in work until now: it left when the time of its last tick was over.
        self._gauges[Gauge.STARTED_VERSION] = 0
        version = self._end.version()
        if version < 0:
            return False
        grant = self._end.sender.reserve()
        if grant is None:
            self._gauges[Gauge.ACTIVITY] = Activity.PACED
            return False
        self._gauges[Gauge.ACTIVITY] = Activity.ACTING
        self._gauges[Gauge.STARTED_VERSION] = version + 1
        self._grant, self._oldest, self._done = grant, version, 0
        self._started_ns = self._end.now_ns()
        return True

    def _is_hurried(self) -> bool:
        assert self._grant is not None
        return self._pace.can_be_short and self._end.rows.orders[Order.HURRY] > self._grant.round

    def _finish(self) -> None:
        assert self._grant is not None
        steps = self._pace.steps_per_unroll * self._done // self._pace.num_slices
        newest = self._end.version()
        self._end.send(self._grant, self._oldest, newest, steps, self._started_ns)
        self._grant = None
        self._gauges[Gauge.STEPS] += steps
        self._gauges[Gauge.ITEMS] += 1


class SimulatedGradients:
    """An actor of gradients in given times (jobs.TimedActor).

    posted: what was sent last: a version and the number of gradients at it.
    """

    def __init__(self, num_steps: int, timing: Timing, end: ActorEnd) -> None:
        """num_steps: environment steps of one gradient."""
        self._num_steps = num_steps
        self._timing = timing
        self._end = end
        self._orders = end.rows.orders
        self._since_ns = end.now_ns()
        self._version = -1
        self._grant: Grant | None = None
        self._started_ns = 0
        self.posted = Contribution(-1, 0)
        self.is_working = False
        self.due_ns = 0

    def is_wanted(self) -> bool:
        return self._orders[Order.CLOSED] <= self._version

    def begin(self) -> bool:
        if self.is_working:
            self.is_working = False
            self._end.rows.gauges[Gauge.DISCARDED] += self._end.now_ns() > self._started_ns
        version = self._end.version()
        if version < 0 or self._orders[Order.CLOSED] > version:
            return False
        self._grant = self._grant or self._end.sender.reserve()
        if self._grant is None:
            return False
        self._version = version
        self._started_ns = self._end.now_ns()
        self._timing.begin(version, self._started_ns, self._since_ns)
        self.due_ns = self._timing.due_ns(self._num_steps)
        self.is_working = True
        return True

    def tick(self) -> bool:
        """Send the gradient."""
        assert self._grant is not None, "an item in work has a slot"
        before = self.posted.num_gradients if self.posted.version == self._version else 0
        self.posted = Contribution(self._version, before + 1)
        version, steps = self._version, self._num_steps
        self._end.send(self._grant, version, version, steps, self._started_ns)
        self._grant = None
        self.is_working = False
        return True
