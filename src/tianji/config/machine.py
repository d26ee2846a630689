"""What this machine lets us use: the mask and the limits, never the bare processor count."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_SYSTEM = Path("/sys/devices/system")


@dataclass(frozen=True, slots=True)
class Machine:
    """Machine(cores=(0, 1), memory_bytes=24 << 30)"""

    cores: tuple[int, ...]
    """Usable core ids: the affinity mask, cut to the control group's quota."""
    memory_bytes: int
    """Memory that can still be taken: the smaller of what is free and what the group may have."""
    is_shared: bool = False
    """The control group has a quota of time on more cores than that: they are not ours to pin."""
    nodes: tuple[tuple[int, ...], ...] = ()
    """Usable cores by NUMA node; empty: one node."""
    siblings: tuple[tuple[int, ...], ...] = ()
    """Usable hyper-threads of one core each, where a core has several; empty: none has."""


def read_machine() -> Machine:
    mask = sorted(os.sched_getaffinity(0))
    quota = cpu_quota()
    cores = mask if quota is None else mask[: max(1, int(quota))]
    return Machine(
        cores=tuple(cores),
        memory_bytes=memory_available_bytes(),
        is_shared=len(cores) < len(mask),
        nodes=numa_nodes(cores),
        siblings=hyper_threads(cores),
    )


def numa_nodes(cores: Sequence[int], system: Path = _SYSTEM) -> tuple[tuple[int, ...], ...]:
    """These cores by memory node; all in one where the system does not say."""
    folders = sorted(system.glob("node/node*"), key=lambda path: (len(path.name), path.name))
    nodes = [_among(cores, folder / "cpulist") for folder in folders]
    if sum(map(len, nodes)) != len(cores):
        return (tuple(cores),)
    return tuple(node for node in nodes if node)


def hyper_threads(cores: Sequence[int], system: Path = _SYSTEM) -> tuple[tuple[int, ...], ...]:
    """Groups of these that are threads of one core; only groups of several."""
    lists = (system / f"cpu/cpu{core}/topology/thread_siblings_list" for core in cores)
    groups = dict.fromkeys(_among(cores, path) for path in lists)
    return tuple(group for group in groups if len(group) > 1)


def _among(cores: Sequence[int], listed: Path) -> tuple[int, ...]:
    """Those of the cores that a file of the kernel lists, such as `0-3,8`; none if unreadable."""
    try:
        ranges = [part.split("-") for part in listed.read_text().strip().split(",") if part]
        named = {core for ends in ranges for core in range(int(ends[0]), int(ends[-1]) + 1)}
    except (OSError, ValueError):
        return ()
    return tuple(core for core in cores if core in named)


def cpu_quota(group: Path = Path("/sys/fs/cgroup")) -> float | None:
    """Cores that the control group allows, None without a limit (cgroup v2, then v1)."""
    try:
        limit, period = (group / "cpu.max").read_text().split()
        return None if limit == "max" else int(limit) / int(period)
    except (OSError, ValueError):
        pass
    try:
        limit_us = int((group / "cpu" / "cpu.cfs_quota_us").read_text())
        period_us = int((group / "cpu" / "cpu.cfs_period_us").read_text())
        return limit_us / period_us if limit_us > 0 else None
    except (OSError, ValueError):
        return None


def memory_available_bytes(group: Path = Path("/sys/fs/cgroup")) -> int:
    available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        available = next(int(x.split()[1]) * 1024 for x in lines if x.startswith("MemAvailable"))
    except (OSError, StopIteration):
        pass
    names = (
        ("memory.max", "memory.current", "memory.stat"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"),
    )
    for limit_name, used_name, stat_name in names:  # cgroup v2, then v1
        try:
            limit = int((group / limit_name).read_text())
            used = int((group / used_name).read_text()) - _reclaimable(group / stat_name)
        except (OSError, ValueError):
            continue  # no such file, or "max"
        available = min(available, limit - used)
    return available


def _reclaimable(stat: Path) -> int:
    """Files in the page cache count as used, but the kernel gives them back on demand."""
    try:
        counts = dict(line.split() for line in stat.read_text().splitlines())
        return int(counts["inactive_file"])
    except (OSError, ValueError, KeyError):
        return 0
