"""Jobs of roles that compute, or that stand for roles that do: how long their ticks take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tianji.channels.gauges import Gauge
from tianji.costs.work import Work
from tianji.types import Clock
from tianji.virtual.costs import LearnerParts, RunCosts
from tianji.virtual.groups.meeting import Agreement
from tianji.virtual.node import Job, Ranks

# In given times the learner looks at an arrival before anything else that is due then.
LEARNER_RANKS = Ranks(woken=-1, due=-1)


def actor_ranks(index: int) -> Ranks:
    """In given times actors that are woken come first, those that are due by their index."""
    return Ranks(woken=-2, due=index)


class ActingJob(Job):
    """An actor or an evaluator; a tick is one step of its environments."""

    def __init__(
        self, tick: Callable[[], bool], row: memoryview[int], costs: RunCosts, now_ns: Clock
    ) -> None:
        super().__init__(row)
        self._tick = tick
        self._costs = costs
        self._now_ns = now_ns

    def tick(self) -> Work | None:
        worked = self._tick()
        self.rows[0][Gauge.HEARTBEAT_NS] = self._now_ns()
        return self._costs.row if worked else None

    def spend(self, took_ns: int) -> None:
        super().spend(took_ns)
        self.rows[0][Gauge.ENV_NS] += round(took_ns * self._costs.environment_share)


class TimedActor(Protocol):
    """An actor whose items take given times.

    is_working: an item has been begun and is neither sent nor dropped.
    """

    is_working: bool

    @property
    def due_ns(self) -> int:
        """When the item in work may be sent; 0 while that is not known."""
        ...

    def is_wanted(self) -> bool:
        """Return whether the item in work is still wanted."""
        ...

    def begin(self) -> bool:
        """Drop an item that is not wanted, begin one if one may; return whether one is in work."""
        ...

    def tick(self) -> bool:
        """Work on the item."""
        ...


class TimedJob(Job):
    """An actor whose items take given times: each is computed when it is due, in one go.

    An item that is no longer wanted by then is never computed. Ticks take no time: the worker
    sleeps while an item is in work, and that time counts as busy.
    """

    def __init__(self, actor: TimedActor, row: memoryview[int], now_ns: Clock) -> None:
        super().__init__(row)
        self._actor = actor
        self._now_ns = now_ns
        self._due_ns = 0

    def tick(self) -> Work | None:
        actor, now_ns = self._actor, self._now_ns()
        self.rows[0][Gauge.HEARTBEAT_NS] = now_ns
        if not self.listens():
            if now_ns >= self._due_ns:
                while actor.is_working:
                    actor.tick()
                self._due_ns = now_ns  # begin the next one after the buffer has seen this one
            return None
        actor.begin()
        while actor.is_working and not actor.due_ns:  # it depends on the number of steps
            actor.tick()
        self._due_ns = actor.due_ns if actor.is_working else 0
        return None

    def due_ns(self) -> int:
        return self._due_ns

    def listens(self) -> bool:
        return not (self._actor.is_working and self._actor.is_wanted())

    def rest(self, slept_ns: int) -> None:
        gauge = Gauge.BUSY_NS if self._actor.is_working else Gauge.WAIT_NS
        self.rows[0][gauge] += slept_ns


class LearnerJob(Job):
    """Buffer and learner in one worker; their gauges tell what a tick was."""

    def __init__(
        self,
        tick: Callable[[], bool],
        parts: LearnerParts,
        buffer: memoryview[int],
        learner: memoryview[int],
        due_ns: Callable[[], int] = lambda: 0,
        agreement: Agreement | None = None,
    ) -> None:
        """due_ns: returns when there is something to do although nothing arrives; 0: never.
        agreement: how the learner waits for those of other groups."""
        super().__init__(buffer, learner)
        self._tick = tick
        self._parts = parts
        self._buffer = buffer
        self._learner = learner
        self._due_ns = due_ns
        self._agreement = agreement
        self._receiving = self._publishing = 0.0  # shares of the last tick

    def tick(self) -> Work | None:
        if self._agreement is not None and self._agreement.member.is_waiting:
            return None
        received, updates = self._buffer[Gauge.ITEMS], self._learner[Gauge.UPDATES]
        version = self._learner[Gauge.VERSION]
        if not self._tick():
            return None
        parts = self._parts
        num_received = self._buffer[Gauge.ITEMS] - received
        num_published = self._learner[Gauge.VERSION] - version
        num_updates = self._learner[Gauge.UPDATES] - updates
        if num_updates and self._agreement is not None:
            self._agreement.after_update()
        work = parts.work(num_received, num_updates, num_published)
        whole_s = work.alone_s or 1.0
        self._receiving = num_received * parts.receive_s / whole_s
        self._publishing = num_published * parts.publish_s / whole_s
        return work

    def due_ns(self) -> int:
        return self._due_ns()

    def spend(self, took_ns: int) -> None:
        receiving_ns = round(self._receiving * took_ns)
        self._buffer[Gauge.BUSY_NS] += receiving_ns
        self._learner[Gauge.BUSY_NS] += took_ns - receiving_ns
        self._learner[Gauge.PUBLISH_NS] += round(self._publishing * took_ns)
