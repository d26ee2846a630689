"""Memory and processor time of this process and of those that its environments have started."""

from __future__ import annotations

import os
import time
from pathlib import Path

from tianji.observe.processes import read_process


class ProcessFamily:
    """All processes of this session: a process that measures leads a session of its own."""

    def __init__(self) -> None:
        others = [pid for pid in _all_pids() if pid != os.getpid()]
        self._children = [pid for pid in others if _session(pid) == os.getsid(0)]

    def memory_bytes(self) -> int:
        """Return their own memory and their part of shared pages: one that n processes use counts
        as 1/n. Slots and boards are left out: the plan counts those. If the system does not tell
        parts, only their own memory counts."""
        return sum(map(_memory_bytes, (os.getpid(), *self._children)))

    def cpu_s(self) -> float:
        used = [use.core_ns / 1e9 for use in map(read_process, self._children) if use is not None]
        return time.process_time() + sum(used)


def _all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:  # it is gone
        return None


def _memory_bytes(pid: int) -> int:
    parts = _sizes(Path(f"/proc/{pid}/smaps_rollup"))
    if "Pss_Shmem" in parts:
        return parts["Pss"] - parts["Pss_Shmem"]
    return _sizes(Path(f"/proc/{pid}/status")).get("RssAnon", 0)


def _sizes(path: Path) -> dict[str, int]:
    """Return the sizes in a file of the kernel, in bytes; none if it cannot be read."""
    try:
        lines = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    return {words[0][:-1]: int(words[1]) * 1024 for words in lines if words[-1:] == ["kB"]}
