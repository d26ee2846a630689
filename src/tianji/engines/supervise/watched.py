"""One worker as its supervisor sees it: its process, the gauges of its roles, its failures."""

from __future__ import annotations

import time
from collections.abc import Sequence

from tianji.channels.gauges import Activity, Gauge, Gauges
from tianji.engines.supervise.health import Health, Work, work_of_actor, work_of_learner
from tianji.engines.supervise.process import WorkerProcess
from tianji.programs.program import Role, Worker

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
                return (
                    f"no sign of life for {silent_s:.0f} s while {activity}; killed. If an "
                    "environment step may take that long, raise supervise.heartbeat_timeout_s"
                )
        return None
