"""Simulated machines: cores that workers share, and the loop of a worker on them.

A worker is ticked as in the other engines: while it finds work it goes on, else it sleeps until
something wakes it. A tick happens at one moment, and then holds its cores for as long as its work
takes; what it sends or publishes leaves when that time is over.

Where there are more workers than cores, whoever has had least is next, as with the scheduler of an
operating system: after QUANTUM_NS a worker gives way to one that waits, and one that slept has no
claim to the time that it slept through. Nobody is interrupted in the middle of a tick.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Protocol

from tianji.channels.gauges import Gauge
from tianji.costs.work import Work
from tianji.virtual.clock import Action, VirtualClock

QUANTUM_NS = 1_000_000
IDLE_NS = 250_000_000  # whoever waits for a point in time looks around this often


class Job(Protocol):
    """What a worker does."""

    def tick(self) -> Work | None:
        """Do something and say what work that was, or None when there is nothing to do."""
        ...

    def spend(self, took_ns: int) -> None:
        """So long did the last tick take, as loaded as the machine was."""
        ...


class Node:
    """One machine with so many cores."""

    def __init__(self, num_cores: int) -> None:
        self.num_cores = num_cores
        self.num_busy = 0
        self._waiting: list[tuple[int, int, Worker]] = []
        self._running: list[Worker] = []
        self._order = 0

    def has_waiting(self) -> bool:
        return bool(self._waiting)

    def load_on(self, worker: Worker) -> float:
        """How much of the rest of the machine is at work, seen from a worker."""
        others = max(1, self.num_cores - worker.num_held)
        return (self.num_busy - worker.num_held) / others

    def ask(self, worker: Worker) -> None:
        """The worker wants to run, or, if it has cores, to go on when it is its turn again."""
        if self.num_busy == self.num_cores:
            least_ns = min(other.used_ns for other in self._running)
            worker.used_ns = max(worker.used_ns, least_ns - QUANTUM_NS)
        heapq.heappush(self._waiting, (worker.used_ns, self._order, worker))
        self._order += 1
        self.leave(worker)

    def leave(self, worker: Worker) -> None:
        """Whatever it has."""
        if worker.num_held:
            self._running.remove(worker)
            self.num_busy -= worker.num_held
            worker.num_held = 0
        self._give()

    def _give(self) -> None:
        """Threads of one worker wait for each other at every operation, so it begins when there is
        a core for each; until then nobody else may take one before it."""
        while self._waiting:
            worker = self._waiting[0][2]
            wanted = worker.cores_wanted(self.num_cores)
            if self.num_busy + wanted > self.num_cores:
                return
            heapq.heappop(self._waiting)
            self._running.append(worker)
            self.num_busy += wanted
            worker.begin(wanted)


class Worker:
    """One process: ticks while there is work, sleeps when there is none."""

    def __init__(
        self,
        clock: VirtualClock,
        node: Node,
        job: Job,
        gauges: Sequence[memoryview[int]] = (),
        cores: float = 1.0,
        idle_ns: int = 0,
        wake_ns: int = 0,
    ) -> None:
        """cores: how many it keeps busy while it works, on average; gauges: rows of its roles, to
        which the time asleep goes; idle_ns: look around after so much sleep, as nobody may wake it;
        wake_ns: how long it takes from being woken to running."""
        self._clock = clock
        self._node = node
        self._job = job
        self._gauges = gauges
        self._cores = cores
        self._idle_ns = idle_ns
        self._wake_ns = wake_ns
        self._outbox: list[Action] = []
        self._sleeps_since_ns: int | None = clock.now_ns()
        self._slice_ns = 0
        self._owed = 0.0
        self.num_held = 0
        """Cores that it has now."""
        self.used_ns = 0
        """Time on cores, with what was forgiven after sleeping."""
        self.busy_ns = 0
        """Time at work, with what it waited for inside a tick."""
        self.cores_ns = 0
        """Time on cores, of all that it held."""

    def wake(self) -> None:
        """There may be something to do. A worker that is at it looks again by itself."""
        if self._sleeps_since_ns is None:
            return
        slept_ns = self._clock.now_ns() - self._sleeps_since_ns
        self._sleeps_since_ns = None
        for row in self._gauges:
            row[Gauge.WAIT_NS] += slept_ns
        self._clock.after(self._wake_ns, self._ask)

    def later(self, action: Action) -> None:
        """Let this happen when the tick's time is over: what it sends or publishes."""
        self._outbox.append(action)

    def after_what_left(self, action: Action) -> None:
        """At once, unless something that comes before it is still being made."""
        if self._outbox:
            self._outbox.append(action)
        else:
            action()

    def cores_wanted(self, num_cores: int) -> int:
        """A whole number; what it is too little or too much is made up for by the next."""
        return max(1, min(num_cores, int(self._cores + self._owed + 0.5)))

    def _ask(self) -> None:
        self._node.ask(self)

    def begin(self, num_cores: int) -> None:
        """The node has given us cores."""
        self._owed = max(-1.0, min(1.0, self._owed + self._cores - num_cores))
        self.num_held = num_cores
        self._slice_ns = 0
        self._run()

    def _run(self) -> None:
        """A tick; it is as fast as the load at its beginning lets it be."""
        work = self._job.tick()
        if work is None:
            self._sleep()
            return
        work = work.under(self._node.load_on(self))
        took_ns = round(work.alone_s * 1e9)
        held_ns = round(took_ns * min(1.0, work.cores))
        self._job.spend(took_ns)
        self.busy_ns += took_ns
        self._slice_ns += held_ns
        self.used_ns += held_ns * self.num_held
        self.cores_ns += held_ns * self.num_held
        self._clock.after(held_ns, lambda: self._end(took_ns - held_ns))

    def _end(self, waits_ns: int) -> None:
        """The cores' part is over; an environment that talks to something else takes longer."""
        if waits_ns:
            self._clock.after(waits_ns, self._come_back)
            self._node.leave(self)
            return
        self.deliver()
        if self._slice_ns < QUANTUM_NS or not self._node.has_waiting():
            self._run()
            return
        self._ask()

    def _come_back(self) -> None:
        self.deliver()
        self._ask()

    def deliver(self) -> None:
        """Send off what was made."""
        outbox, self._outbox = self._outbox, []
        for action in outbox:
            action()

    def _sleep(self) -> None:
        assert not self._outbox, "something was sent by a tick that did nothing"
        since = self._sleeps_since_ns = self._clock.now_ns()
        self._node.leave(self)
        if self._idle_ns:
            self._clock.after(self._idle_ns, lambda: self._look_around(since))

    def _look_around(self, since_ns: int) -> None:
        if self._sleeps_since_ns == since_ns:
            self.wake()
