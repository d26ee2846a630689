"""The loop of a worker: tick while there is work, else sleep on the bell."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from tianji.channels.gauges import Activity, Gauge

IDLE_HEARTBEAT_S = 0.25  # a sleeping worker shows this often that it is alive


class Sleeper(Protocol):
    """An idle worker waits on it."""

    def arm(self) -> None: ...

    def wait(self, timeout_s: float) -> bool: ...


def run_loop(
    tick: Callable[[], bool],
    gauges: Sequence[memoryview[int]],
    bell: Sleeper,
    is_over: Callable[[], bool],
    due_ns: Callable[[], int] = lambda: 0,
) -> None:
    """Tick until `is_over`; the time spent asleep goes to the gauges of the worker's roles.

    due_ns: when there will be something to do although nobody rings; 0: nobody knows.
    """
    for row in gauges:
        row[Gauge.THREAD_ID] = threading.get_native_id()
    is_armed = False
    while not is_over():
        if tick():
            is_armed = False
            continue
        if not is_armed:
            bell.arm()  # what came before this rings no bell, so look once more
            is_armed = True
            continue
        is_armed = False
        before_ns = time.monotonic_ns()
        bell.wait(_sleep_s(due_ns(), before_ns))
        after_ns = time.monotonic_ns()
        for row in gauges:
            row[Gauge.HEARTBEAT_NS] = after_ns
            row[Gauge.WAIT_NS] += after_ns - before_ns
            if row[Gauge.ACTIVITY] == Activity.ASKING:
                row[Gauge.ANSWER_NS] += after_ns - before_ns
    for row in gauges:
        row[Gauge.ACTIVITY] = Activity.STOPPED


def _sleep_s(due_ns: int, now_ns: int) -> float:
    return min(IDLE_HEARTBEAT_S, max(0, due_ns - now_ns) / 1e9) if due_ns else IDLE_HEARTBEAT_S
