"""Rates and shares from the gauges, all from one clock."""

from __future__ import annotations

import os
import time
from collections import deque
from pathlib import Path
from typing import Any, NamedTuple

from tianji.channels.gauges import Activity, Gauge, Gauges

WINDOW_S = 3.0
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class _Sample(NamedTuple):
    at_ns: int
    produced: int
    received: int
    trained: int
    unique_trained: int
    busy_ns: dict[str, int]
    wait_ns: dict[str, int]


class Watch:
    """Looks at the gauges now and then; rates are over the last few seconds."""

    def __init__(self, gauges: Gauges) -> None:
        self._gauges = gauges
        self._samples: deque[_Sample] = deque()

    def first_step_ns(self) -> int:
        """When the first environment step of all began; 0 before it."""
        begun = [row[Gauge.FIRST_STEP_NS] for row in self._actor_rows()]
        return min(filter(None, begun), default=0)

    def _actor_rows(self) -> list[memoryview[int]]:
        return [row for name, row in self._gauges.rows.items() if name.startswith("actor-")]

    def look(self) -> None:
        sample = self._sample()
        self._samples.append(sample)
        while len(self._samples) > 2 and sample.at_ns - self._samples[1].at_ns > WINDOW_S * 1e9:
            self._samples.popleft()

    def _sample(self) -> _Sample:
        rows = self._gauges.rows
        return _Sample(
            at_ns=time.monotonic_ns(),
            produced=sum(row[Gauge.STEPS] for row in self._actor_rows()),
            received=rows["buffer"][Gauge.RECEIVED_STEPS],
            trained=rows["learner"][Gauge.STEPS],
            unique_trained=rows["learner"][Gauge.UNIQUE_STEPS],
            busy_ns={name: row[Gauge.BUSY_NS] for name, row in rows.items()},
            wait_ns={name: row[Gauge.WAIT_NS] for name, row in rows.items()},
        )

    def now(self) -> dict[str, Any]:
        """Rates and shares over the last few seconds."""
        if not self._samples:
            return {}
        return _between(self._samples[0], self._samples[-1])

    def activities(self) -> dict[str, str]:
        return {
            name: Activity(row[Gauge.ACTIVITY]).name.lower()
            for name, row in self._gauges.rows.items()
        }


def _between(first: _Sample, last: _Sample) -> dict[str, Any]:
    elapsed_s = max(1e-9, (last.at_ns - first.at_ns) / 1e9)
    rates = {
        name: max(0, getattr(last, name) - getattr(first, name)) / elapsed_s
        for name in ("produced", "received", "trained", "unique_trained")
    }
    return {
        "rates_per_s": rates,
        "busy_share": _shares(first.busy_ns, last.busy_ns, elapsed_s),
        "paced_share": _shares(first.wait_ns, last.wait_ns, elapsed_s),
    }


def _shares(first: dict[str, int], last: dict[str, int], elapsed_s: float) -> dict[str, float]:
    spent_s = {name: (last[name] - first.get(name, 0)) / 1e9 for name in last}
    return {name: min(1.0, max(0.0, spent / elapsed_s)) for name, spent in spent_s.items()}


def resident_bytes(pid: int) -> int | None:
    """Memory of a process that is in RAM; None when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return None
