"""This process and those that its environments have started: their memory and processor time."""

from __future__ import annotations

import os
import time
from pathlib import Path

_CLOCK_HZ = os.sysconf("SC_CLK_TCK")


class Family:
    """A profile's worker leads a session of its own, so whoever is in it belongs to it."""

    def __init__(self) -> None:
        self._children = [pid for pid in _all_pids() if _is_ours(pid)]

    def memory_bytes(self) -> int:
        """Their own memory and their part of the libraries' pages, which all processes share: a
        page that n of them use counts as 1/n. Without slots and boards: the plan counts those.
        Where the system does not tell parts, their own memory alone."""
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
    parts = _sizes(Path(f"/proc/{pid}/smaps_rollup"))
    if "Pss_Shmem" in parts:
        return parts["Pss"] - parts["Pss_Shmem"]
    return _sizes(Path(f"/proc/{pid}/status")).get("RssAnon", 0)


def _sizes(path: Path) -> dict[str, int]:
    """Bytes by name, of the lines that tell a size; none where the file cannot be read."""
    try:
        lines = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    return {words[0][:-1]: int(words[1]) * 1024 for words in lines if words[-1:] == ["kB"]}
