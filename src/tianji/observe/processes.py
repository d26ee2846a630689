"""What the system knows of a process: its memory, its processor time, its time without a core."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")
_USER_TICKS, _SYSTEM_TICKS, _RESIDENT_PAGES = 11, 12, 21
"""Fields of /proc/PID/stat, counted after the name, which may contain spaces."""


class ProcessUse(NamedTuple):
    """What a process has used since it began."""

    resident_bytes: int
    core_ns: int
    """Processor time of all its threads."""
    no_core_ns: int
    """Its first thread was ready to run and had no core. A role lives in the first thread."""


def read_process(pid: int) -> ProcessUse | None:
    """Return None when the process is gone."""
    try:
        words = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        resident = int(words[_RESIDENT_PAGES]) * PAGE_BYTES
        core_ns = (int(words[_USER_TICKS]) + int(words[_SYSTEM_TICKS])) * TICK_NS
    except (OSError, ValueError, IndexError):
        return None
    no_core_ns = 0
    with suppress(OSError, ValueError, IndexError):  # where the kernel does not count it
        no_core_ns = int(_read(f"/proc/{pid}/schedstat").split()[1])
    return ProcessUse(resident, core_ns, no_core_ns)


def _read(path: str) -> bytes:
    """Read a small file three times as fast as a Path; each sample reads two per actor."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)


class ProcessTimes:
    """Adds up the times of all processes that a worker has had, restarts included."""

    def __init__(self) -> None:
        self._last: dict[int, ProcessUse] = {}
        self.core_ns: dict[str, int] = {}
        self.no_core_ns: dict[str, int] = {}
        self.resident_bytes: dict[str, int] = {}

    def look(self, pids: Mapping[str, int]) -> None:
        self.resident_bytes = {}
        for name, pid in pids.items():
            use = read_process(pid)
            if use is None:
                continue
            self.resident_bytes[name] = use.resident_bytes
            last = self._last.get(pid, ProcessUse(0, 0, 0))
            self._last[pid] = use
            self.core_ns[name] = self.core_ns.get(name, 0) + use.core_ns - last.core_ns
            self.no_core_ns[name] = self.no_core_ns.get(name, 0) + use.no_core_ns - last.no_core_ns
