"""When the person pressed enter: start-up time is what they wait, the interpreter included."""

from __future__ import annotations

import os
import time
from pathlib import Path

_START_TIME = 19
"""Field 22 of /proc/PID/stat, counted after the process name: ticks since the system started."""


def process_started_ns(stat: Path = Path("/proc/self/stat")) -> int:
    """Start of this process on CLOCK_MONOTONIC; now, where the system does not tell."""
    now_ns = time.monotonic_ns()
    try:
        ticks = int(stat.read_text().rpartition(")")[2].split()[_START_TIME])
    except (OSError, IndexError, ValueError):
        return now_ns
    since_boot_ns = ticks * 10**9 // os.sysconf("SC_CLK_TCK")
    # Since the system started counts suspended time, CLOCK_MONOTONIC does not: take the age.
    return now_ns - (time.clock_gettime_ns(time.CLOCK_BOOTTIME) - since_boot_ns)
