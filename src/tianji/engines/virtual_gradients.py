"""The virtual engine of algorithms that gather gradients: given times, every role for real.

A gradient is one event. The actor begins it under the policy of that moment, and computes it when
its time is over: if the round was closed in the meantime, it is dropped and never computed, which
is most of the work where rounds take few of many actors' gradients. Its token arrives at that time,
and buffer and learner look at it before anything else that is due then; ties go by the index of
the actor. The learner's own work takes no time, sums that are collected when a round closes do.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from tianji.actor.role import Actor
from tianji.channels.gauges import Gauge, timed_tick
from tianji.channels.inproc import InprocBoard, InprocStream
from tianji.channels.layout import Layout
from tianji.engines.arithmetic import use_threads
from tianji.engines.interface import Observer, Outcome
from tianji.engines.moments import run_moments
from tianji.engines.signals import StopRequest
from tianji.engines.spec import RunSpec
from tianji.engines.together import Together
from tianji.programs.program import Program
from tianji.records import StoppedBecause
from tianji.types import Clock
from tianji.virtual.clock import VirtualClock

LEARNER_RANK = -1
"""Before the actors, who are ranked by their index."""


class VirtualGradientEngine:
    """Runs a program in the calling process, with the times that its config gives."""

    def __init__(self, spec: RunSpec, program: Program, observer: Observer) -> None:
        plan = spec.plan
        self._observer = observer
        self._clock = clock = VirtualClock(start_ns=time.monotonic_ns())
        stream = InprocStream(Layout.from_json(plan.layout), plan.num_slots, plan.num_actors)
        self._roles = Together(spec, program, observer, stream, InprocBoard, clock.now_ns)
        rows = self._roles.gauges.rows
        self._actors = [
            _TimedActor(actor, rows[name], clock.now_ns)
            for name, actor in self._roles.actors.items()
        ]
        self._others = [(role, rows[name]) for name, role in self._roles.evaluators.items()]
        self._buffer_row = rows["buffer"]
        self._due_ns = 0
        """When the learner's side looks next without being asked to; 0: not at all."""

    def run(self, stop: StopRequest, resume: bool) -> Outcome:
        return self._roles.run(self._loop, stop, resume, self._settle)

    def _settle(self) -> None:
        for actor in self._actors:
            actor.settle()

    def _loop(self, stop: StopRequest) -> StoppedBecause:
        use_threads(1)  # the same sums on every machine; there is nothing here that gains by more
        self._evaluate()
        self._clock.at(self._clock.now_ns(), self._look, LEARNER_RANK)
        return run_moments(self._clock, self._roles, self._observer, stop)

    def _look(self) -> None:
        """The learner's side does what there is to do; everybody sees what has come of it."""
        self._due_ns = 0
        self._tick_side()
        self._look_at(self._actors)

    def _arrive(self, actor: _TimedActor, number: int) -> None:
        """A gradient is done, unless its round was closed before."""
        if actor.number != number:
            return
        actor.finish()
        is_news = self._tick_side()
        self._look_at(self._actors if is_news else (actor,))

    def _tick_side(self) -> bool:
        """Whether a round was closed, or a version published."""
        side = self._roles.side
        version, closed = side.group.learner.version, self._buffer_row[Gauge.CLOSED]
        while side.tick():
            if self._buffer_row[Gauge.CLOSED] > closed:
                self._look_at(self._actors)  # what they drop belongs to the round that was closed
        if side.group.learner.version > version:
            self._evaluate()
        if side.due_ns not in (0, self._due_ns) and side.due_ns > self._clock.now_ns():
            self._due_ns = side.due_ns
            self._clock.at(side.due_ns, self._look, LEARNER_RANK)
        return side.group.learner.version > version or self._buffer_row[Gauge.CLOSED] > closed

    def _evaluate(self) -> None:
        """With a new version, if it is time to: whole episodes at this moment."""
        for role, row in self._others:
            while timed_tick(role, row, self._clock.now_ns):
                pass

    def _look_at(self, actors: Sequence[_TimedActor]) -> None:
        """Those whose gradient is no longer wanted drop it; those who may begin another."""
        for actor in actors:
            if actor.begin():
                self._put_down(actor, actor.number)

    def _put_down(self, actor: _TimedActor, number: int) -> None:
        self._clock.at(actor.due_ns, lambda: self._arrive(actor, number), actor.index)


class _TimedActor:
    """An actor that computes a gradient in one go, or never."""

    def __init__(self, actor: Actor, gauges: memoryview[int], now_ns: Clock) -> None:
        self._actor = actor
        self._gauges = gauges
        self._now_ns = now_ns
        self._since_ns = now_ns()
        """When it began what it does now, or began to wait."""
        self.index = actor.index
        self.number = 0
        """Gradients begun and dropped; an event of an earlier number is void."""
        self.due_ns = 0

    def begin(self) -> bool:
        """Drop what is no longer wanted, and begin a gradient if one is; True if so."""
        actor = self._actor
        was_working = actor.is_working
        if was_working and actor.is_wanted():
            return False
        actor.begin()
        self._gauges[Gauge.HEARTBEAT_NS] = self._now_ns()
        if was_working:
            self.number += 1
            self._account(Gauge.BUSY_NS)
        if not actor.is_working:
            return False
        self._account(Gauge.WAIT_NS)
        while not actor.due_ns:  # it depends on how many steps there are
            actor.tick()
        self.due_ns = actor.due_ns
        return True

    def finish(self) -> None:
        while self._actor.is_working:
            self._actor.tick()
        self.number += 1
        self._account(Gauge.BUSY_NS)

    def settle(self) -> None:
        """Somebody looks at the gauges in the middle of what it does."""
        self._account(Gauge.BUSY_NS if self._actor.is_working else Gauge.WAIT_NS)

    def _account(self, gauge: Gauge) -> None:
        now_ns = self._now_ns()
        self._gauges[gauge] += now_ns - self._since_ns
        self._since_ns = now_ns
