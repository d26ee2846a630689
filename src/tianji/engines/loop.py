"""The self-driven loop of a worker: tick while there is work, else sleep on the bell."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from tianji.channels.gauges import Activity, Gauge

IDLE_HEARTBEAT_S = 0.25  # a sleeping worker shows this often that it is alive


class Role(Protocol):
    """Anything with a tick that says whether it did some work."""

    def tick(self) -> bool: ...


class Sleeper(Protocol):
    """What an idle worker waits on."""

    def wait(self, timeout_s: float) -> bool: ...


def run_loop(
    role: Role,
    gauges: Sequence[memoryview[int]],
    bell: Sleeper,
    is_over: Callable[[], bool],
) -> None:
    """Tick until `is_over`. Busy and waiting time go to the gauges of the worker's roles."""
    last_ns = time.monotonic_ns()
    while not is_over():
        worked = role.tick()
        now_ns = time.monotonic_ns()
        for row in gauges:
            row[Gauge.HEARTBEAT_NS] = now_ns
            row[Gauge.BUSY_NS] += now_ns - last_ns
        last_ns = now_ns
        if not worked:
            bell.wait(IDLE_HEARTBEAT_S)
            last_ns = time.monotonic_ns()
            for row in gauges:
                row[Gauge.HEARTBEAT_NS] = last_ns
                row[Gauge.WAIT_NS] += last_ns - now_ns
    for row in gauges:
        row[Gauge.ACTIVITY] = Activity.STOPPED
