"""CoreTimes: measures the time of a host's roles on its cores and without one, for the head.

The head is on another host, where it cannot ask the system about these processes: the times reach
it as gauges.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

from tianji.channels.gauges import Gauge, Gauges
from tianji.observe.processes import ProcessTimes, Seat
from tianji.types import Clock

PERIOD_NS = 250_000_000
"""Shortest time between two measurements: heads of groups that mix ask more often."""


class CoreTimes:
    """Writes CORE_NS and NO_CORE_NS of the roles that run on this host."""

    def __init__(
        self, gauges: Gauges, roles: Collection[str], now_ns: Clock = time.monotonic_ns
    ) -> None:
        """roles: those of this host. The numbers of other roles' threads are those of their own
        hosts, and may be numbers of other threads here."""
        self._kinds = {role: gauges.kinds[role] for role in roles}
        self._rows = {role: gauges.rows[role] for role in roles}
        self._now_ns = now_ns
        self._next_ns = 0
        self._times = ProcessTimes()

    def look(self, pids: Mapping[str, int]) -> None:
        """Measure, unless that was done a moment ago. pids: the processes of the workers here."""
        now_ns = self._now_ns()
        if now_ns < self._next_ns:
            return
        self._next_ns = now_ns + PERIOD_NS
        threads = {role: row[Gauge.THREAD_ID] for role, row in self._rows.items()}
        self._times.look(pids, {role: Seat(self._kinds[role], threads[role]) for role in threads})
        for role, row in self._rows.items():
            row[Gauge.CORE_NS] = self._times.core_ns.get(role, 0)
            row[Gauge.NO_CORE_NS] = self._times.no_core_ns.get(role, 0)
