"""Simulated machines: cores that workers share, and the loop of a worker on them.

A worker is ticked as in the other engines: while it finds work it continues, else it sleeps until
something wakes it or until it is due. A tick happens at one moment, and then holds its cores for as
long as its work takes; what it sends or publishes leaves at the end of that time.

With more workers than cores, the one that has used least time is next, as with the scheduler of an
operating system: after QUANTUM_NS a worker gives way to one that waits, and a worker that slept
does not get back the time it slept. A tick is never interrupted.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

from tianji.channels.gauges import Gauge
from tianji.costs.work import Work
from tianji.virtual.clock import Action, VirtualClock

QUANTUM_NS = 1_000_000
IDLE_NS = 250_000_000  # a worker that waits for a point in time looks around this often


class Job:
    """The roles of a worker, with their rows of gauges; whether they compute or only cost time."""

    def __init__(self, *rows: memoryview[int]) -> None:
        self.rows = rows

    def tick(self) -> Work | None:
        """Do something and return how much work that was; None when there is nothing to do."""
        raise NotImplementedError

    def due_ns(self) -> int:
        """Return when there will be something to do although nothing wakes the worker; 0: never."""
        return 0

    def listens(self) -> bool:
        """Return whether an event may give the worker something to do before it is due."""
        return True

    def spend(self, took_ns: int) -> None:
        """Account for the last tick, which took this long on the loaded machine."""
        self.rows[0][Gauge.BUSY_NS] += took_ns

    def rest(self, slept_ns: int) -> None:
        """Account for time asleep."""
        for row in self.rows:
            row[Gauge.WAIT_NS] += slept_ns


class Ranks(NamedTuple):
    """The places of a worker among the events of one moment; lower ranks come first.

    woken: the place of its first tick after it was woken.
    due: the place of everything else that it does.
    """

    woken: int = 0
    due: int = 0


EQUAL = Ranks()


class Host:
    """The cores of a machine that several groups have shares of: all of them load its memory."""

    def __init__(self, num_cores: int) -> None:
        self.num_cores = num_cores
        self.num_busy = 0


class Node:
    """Cores that workers share: a whole machine, or the share of one group."""

    def __init__(self, num_cores: int, host: Host | None = None) -> None:
        """host: the machine, where this is a share of it."""
        self.num_cores = num_cores
        self.num_busy = 0
        self._host = host or Host(num_cores)
        self._waiting: list[tuple[int, int, Worker]] = []
        self._running: list[Worker] = []
        self._order = 0

    def has_waiting(self) -> bool:
        return bool(self._waiting)

    def load_on(self, worker: Worker) -> float:
        """Return the share of the machine's other cores that is busy, seen from a worker."""
        others = max(1, self._host.num_cores - worker.num_held)
        return (self._host.num_busy - worker.num_held) / others

    def ask(self, worker: Worker) -> None:
        """Let a worker run when it is its turn; one that has cores gives them back before."""
        if self.num_busy == self.num_cores:
            least_ns = min(other.used_ns for other in self._running)
            worker.used_ns = max(worker.used_ns, least_ns - QUANTUM_NS)
        heapq.heappush(self._waiting, (worker.used_ns, self._order, worker))
        self._order += 1
        self.leave(worker)

    def leave(self, worker: Worker) -> None:
        """Take back the cores of a worker."""
        if worker.num_held:
            self._running.remove(worker)
            self._use(-worker.num_held)
            worker.num_held = 0
        self._give()

    def _give(self) -> None:
        """Start workers in order. The threads of one worker wait for each other at every operation,
        so it starts when there is a core for each; until then no other worker starts."""
        while self._waiting:
            worker = self._waiting[0][2]
            wanted = worker.cores_wanted(self.num_cores)
            if self.num_busy + wanted > self.num_cores:
                return
            heapq.heappop(self._waiting)
            self._running.append(worker)
            self._use(wanted)
            worker.begin(wanted)

    def _use(self, num_cores: int) -> None:
        self.num_busy += num_cores
        self._host.num_busy += num_cores


class Worker:
    """One process: ticks while there is work, sleeps when there is none."""

    def __init__(
        self,
        clock: VirtualClock,
        node: Node,
        job: Job,
        cores: float = 1.0,
        idle_ns: int = 0,
        ranks: Ranks = EQUAL,
    ) -> None:
        """cores: the mean number of cores that it keeps busy; idle_ns: the longest sleep, where
        nothing may wake it."""
        self._clock = clock
        self._node = node
        self._job = job
        self._cores = cores
        self._idle_ns = idle_ns
        self._ranks = ranks
        self._outbox: list[Action] = []
        self._sleeps_since_ns: int | None = clock.now_ns()
        self._num_sleeps = 0
        self._slice_ns = 0
        self._owed = 0.0
        self.num_held = 0  # cores that it has now
        # Time on cores for the order of turns: a long sleep counts as if it had worked.
        self.used_ns = 0
        self.busy_ns = 0  # time at work, including time that a tick waited for something else
        self.cores_ns = 0  # time on cores, summed over the cores

    def wake(self) -> None:
        """Let a sleeping worker look for work, unless news are of no use to it now."""
        if self._sleeps_since_ns is not None and self._job.listens():
            self._wake(self._ranks.woken)

    def settle(self) -> None:
        """Account for the sleep up to now: the gauges are about to be read."""
        if self._sleeps_since_ns is not None:
            now_ns = self._clock.now_ns()
            self._job.rest(now_ns - self._sleeps_since_ns)
            self._sleeps_since_ns = now_ns

    def _wake(self, rank: int) -> None:
        self.settle()
        self._sleeps_since_ns = None
        self._clock.after(0, self._ask, rank)

    def later(self, action: Action) -> None:
        """Do this when the time of the tick is over, such as sending or publishing."""
        self._outbox.append(action)

    def after_what_left(self, action: Action) -> None:
        """Do this now, or after the actions that wait for the end of the tick."""
        if self._outbox:
            self._outbox.append(action)
        else:
            action()

    def cores_wanted(self, num_cores: int) -> int:
        """Return a whole number of cores; the rounding error is carried over to the next call."""
        return max(1, min(num_cores, int(self._cores + self._owed + 0.5)))

    def _ask(self) -> None:
        self._node.ask(self)

    def begin(self, num_cores: int) -> None:
        """Start to work on the cores that the node has given."""
        self._owed = max(-1.0, min(1.0, self._owed + self._cores - num_cores))
        self.num_held = num_cores
        self._slice_ns = 0
        self._run()

    def _run(self) -> None:
        """Tick; the load at the start of the tick decides how long it takes."""
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
        self._clock.after(held_ns, lambda: self._end(took_ns - held_ns), self._ranks.due)

    def _end(self, waits_ns: int) -> None:
        """Give back the cores; a tick that waits for something else (an environment) goes on."""
        if waits_ns:
            self._clock.after(waits_ns, self._come_back, self._ranks.due)
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
        """Send what was made."""
        outbox, self._outbox = self._outbox, []
        for action in outbox:
            action()

    def _sleep(self) -> None:
        self.deliver()
        now_ns = self._sleeps_since_ns = self._clock.now_ns()
        self._num_sleeps = number = self._num_sleeps + 1
        self._node.leave(self)
        due_ns = self._job.due_ns() or (now_ns + self._idle_ns if self._idle_ns else 0)
        if due_ns >= now_ns:
            self._clock.at(due_ns, lambda: self._come_due(number), self._ranks.due)

    def _come_due(self, number: int) -> None:
        """Look for work, unless it has worked since."""
        if self._sleeps_since_ns is not None and self._num_sleeps == number:
            self._wake(self._ranks.due)
