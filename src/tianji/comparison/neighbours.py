"""Measures how much of the machine other programs used during a measurement."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path
from typing import NamedTuple

QUIET_CORES = 0.1
"""Other programs that use more than this, in cores, disturb what is measured."""


class MachineUse(NamedTuple):
    """Seconds since some moment: of the clock, of processors in use by anybody, and of those in use
    by processes that this one has started and waited for."""

    clock_s: float
    everybody_s: float
    children_s: float


def machine_use() -> MachineUse:
    return MachineUse(time.monotonic(), _everybody_s(), _children_s())


def others_cores(before: MachineUse, after: MachineUse) -> float:
    """Return how many cores other programs used on average between two moments.

    >>> others_cores(MachineUse(0.0, 0.0, 0.0), MachineUse(10.0, 25.0, 20.0))
    0.5
    """
    others_s = (after.everybody_s - before.everybody_s) - (after.children_s - before.children_s)
    return round(max(0.0, others_s) / max(after.clock_s - before.clock_s, 1e-9), 3)


def _everybody_s(stat: Path = Path("/proc/stat")) -> float:
    """Return the processor time of all programs since the system started, stolen time included."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = (
        int(ticks) for ticks in stat.read_text().split()[1:9]
    )
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
