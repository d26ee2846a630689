"""One worker as its supervisor sees it: its process, the gauges of its roles, its failures.

A restart is refunded by work: a worker that fails once an hour is not the one that fails again and
again. One that fails without any work in between is given up after a few starts.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from tianji.channels.gauges import Activity, Gauge, Gauges
from tianji.engines.supervise.process import WorkerProcess
from tianji.programs.program import Role, Worker
from tianji.reports import Event

MAX_FRUITLESS = 3
"""Starts in a row without any work after which a worker is given up."""
REFUND_STEPS = 1_000
"""Environment steps of an actor that refund one restart."""
REFUND_S = 60.0
"""Seconds of an actor that delivered something, until its last sign of life, that refund one
restart: worlds may be slow."""


@dataclass(frozen=True, slots=True)
class Work:
    """The work of a worker since its last start."""

    items: int = 0
    """Anything at all: unrolls sent or received, evaluations."""
    refunded: int = 0
    """Restarts that this pays for."""


def work_of_actor(items: int, steps: int, life_s: float) -> Work:
    """An actor's work: what it delivered, in steps and in time."""
    if items <= 0:
        return Work()
    return Work(items, refunded=steps // REFUND_STEPS + int(life_s // REFUND_S))


def work_of_learner(items: int, checkpoints: int) -> Work:
    """A learner's work: what is saved. Its first checkpoint holds what it started from."""
    return Work(items, refunded=max(0, checkpoints - 1))


@dataclass
class Health:
    """One worker's failures, and what they leave of its restarts. No clock, no I/O."""

    restarts: int = 0
    """In the whole run."""
    used: int = 0
    """Restarts that count against max_restarts: those that no work has refunded."""
    fruitless: int = 0
    """Starts in a row without any work."""
    is_given_up: bool = False
    first_cause: str = ""
    """Failures since it last did some work."""
    last_error: Event | None = None
    """The exception that it reported last."""
    start_at_s: float | None = None
    """Time at which to start it again."""
    items_at_start: int = 0
    steps_at_start: int = 0
    started_s: float = 0.0
    checkpoints: int = 0
    """Written since its last start."""

    def begin(self, items: int, steps: int, now_s: float) -> None:
        """The worker was started, with its gauges as they are."""
        self.start_at_s = None
        self.items_at_start, self.steps_at_start, self.started_s = items, steps, now_s
        self.checkpoints = 0

    def fail(self, cause: str, work: Work) -> None:
        """The worker is gone, after this much work."""
        self.used = max(0, self.used - work.refunded)
        self.fruitless = 0 if work.items > 0 else self.fruitless + 1
        if work.items > 0 or not self.first_cause:
            self.first_cause = cause  # what came before was mended

    def why_hopeless(self, max_restarts: int) -> str | None:
        """Why another start would not help, in words; None where it may."""
        if self.used >= max_restarts:
            return (
                f"It was given up: {self.used} of supervise.max_restarts = {max_restarts} restarts "
                "are used, and it did too little work in between to regain one."
            )
        if self.fruitless >= MAX_FRUITLESS:
            return (
                f"It was given up: {self.fruitless} starts in a row led to no work, with "
                f"{self.used} of supervise.max_restarts = {max_restarts} restarts used."
            )
        return None

    def use_restart(self, backoff_s: float) -> float:
        """Count a restart; return how long to wait before it."""
        self.restarts += 1
        self.used += 1
        return backoff_s * 2 ** (self.used - 2) if self.used > 1 else 0.0

    def count_in_words(self, max_restarts: int) -> str:
        """Return which restart this is. Where work has refunded some, two numbers are needed."""
        if self.restarts == self.used:
            return f"Restart {self.used} of {max_restarts}"
        return (
            f"Restart {self.restarts}, which counts as {self.used} of {max_restarts} because it "
            "worked in between"
        )


LONG_STEPS = ". If an environment step may take that long, raise supervise.heartbeat_timeout_s"
STARTS_S = 60.0
"""A worker that starts loads libraries and shows no sign of life: it has at least this long."""


class WatchedWorker:
    """`process` is None while it does not run."""

    def __init__(self, worker: Worker, roles: Sequence[Role], gauges: Gauges) -> None:
        self.name = worker.name
        self.worker = worker
        self.actors = [role for role in roles if role.kind == "actor"]
        self.has_learner = any(role.kind == "learner" for role in roles)
        self.trains = any(role.kind in ("buffer", "learner") for role in roles)
        """Workers that train share their fate: neither buffer nor learner continues alone."""
        self.serves = any(role.kind == "inference" for role in roles)
        """All actors wait for it."""
        self.rows = [gauges.rows[role.name] for role in roles]
        self.health = Health()
        self.process: WorkerProcess | None = None

    def begin(self, process: WorkerProcess) -> None:
        """Note that this process runs it from now on."""
        self.process = process
        for row in self.rows:
            row[Gauge.ACTIVITY] = Activity.STARTING
            row[Gauge.HEARTBEAT_NS] = time.monotonic_ns()
        self.health.begin(self._count(Gauge.ITEMS), self._count(Gauge.STEPS), time.monotonic())

    def give_up(self) -> None:
        self.health.is_given_up = True
        for row in self.rows:
            row[Gauge.ACTIVITY] = Activity.STOPPED

    def _count(self, gauge: Gauge) -> int:
        return sum(row[gauge] for row in self.rows)

    def work(self) -> Work:
        """Return what it has done since its last start."""
        health = self.health
        items = self._count(Gauge.ITEMS) - health.items_at_start
        if self.has_learner:
            return work_of_learner(items, health.checkpoints)
        last_s = max(row[Gauge.HEARTBEAT_NS] for row in self.rows) / 1e9  # after it, it was silent
        steps = self._count(Gauge.STEPS) - health.steps_at_start
        return work_of_actor(items, steps, last_s - health.started_s)

    def silence(self, limit_s: float, since_ns: int, now_ns: int) -> str | None:
        """Return why it must be killed: a role has shown no sign of life for too long.

        since_ns: from when on it could be heard."""
        if any(row[Gauge.ACTIVITY] == Activity.STARTING for row in self.rows):
            limit_s = max(limit_s, STARTS_S)
        for row in self.rows:
            silent_s = (now_ns - max(row[Gauge.HEARTBEAT_NS], since_ns)) / 1e9
            if silent_s > limit_s and row[Gauge.ACTIVITY] != Activity.STOPPED:
                activity = Activity(row[Gauge.ACTIVITY]).name.lower()
                why = f"no sign of life for {silent_s:.0f} s while {activity}; killed"
                return why + (LONG_STEPS if self.actors else "")
        return None
