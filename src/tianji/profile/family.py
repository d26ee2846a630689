"""This process and those that its environments have started: their memory and processor time."""

from __future__ import annotations

import os
import time
from pathlib import Path

_CLOCK_HZ = os.sysconf("SC_CLK_TCK")
_KEPT = ("RssAnon:", "RssFile:")
"""Resident memory without what is shared: slots and boards are counted by the plan."""


class Family:
    """A profile's worker leads a session of its own, so whoever is in it belongs to it."""

    def __init__(self) -> None:
        self._children = [pid for pid in _all_pids() if _is_ours(pid)]

    def memory_bytes(self) -> int:
        return sum(map(_memory_bytes, (os.getpid(), *self._children)))

    def cpu_s(self) -> float:
        return time.process_time() + sum(map(_cpu_s, self._children))


def _all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _stat(pid: int) -> list[str]:
    """The fields behind the name; none of a process that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _is_ours(pid: int) -> bool:
    fields = _stat(pid)
    return pid != os.getpid() and bool(fields) and int(fields[3]) == os.getsid(0)


def _cpu_s(pid: int) -> float:
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / _CLOCK_HZ if fields else 0.0


def _memory_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(_KEPT))
