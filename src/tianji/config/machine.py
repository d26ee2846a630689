"""What this machine lets us use: the mask and the limits, never the bare processor count."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_SYSTEM = Path("/sys/devices/system")
_GROUPS = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")


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


def cpu_quota(root: Path = _GROUPS, membership: Path = _MEMBERSHIP) -> float | None:
    """Cores that the control group and those around it allow; None without a limit."""
    quotas = [_quota_v2(folder) for folder in _groups(root, membership, "")]
    quotas += [_quota_v1(folder) for folder in _groups(root, membership, "cpu")]
    return min((quota for quota in quotas if quota is not None), default=None)


def _quota_v2(folder: Path) -> float | None:
    try:
        limit, period = (folder / "cpu.max").read_text().split()
        return None if limit == "max" else int(limit) / int(period)
    except (OSError, ValueError):
        return None


def _quota_v1(folder: Path) -> float | None:
    try:
        limit_us = int((folder / "cpu.cfs_quota_us").read_text())
        period_us = int((folder / "cpu.cfs_period_us").read_text())
        return limit_us / period_us if limit_us > 0 else None
    except (OSError, ValueError):
        return None


def memory_available_bytes(root: Path = _GROUPS, membership: Path = _MEMBERSHIP) -> int:
    """Memory that can still be taken: of the machine, of the control group and of every group
    around it, the one that has least."""
    available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        available = next(int(x.split()[1]) * 1024 for x in lines if x.startswith("MemAvailable"))
    except (OSError, StopIteration):
        pass
    names = {
        "": ("memory.max", "memory.current"),  # version 2
        "memory": ("memory.limit_in_bytes", "memory.usage_in_bytes"),  # version 1
    }
    for controller, (limit_name, used_name) in names.items():
        for folder in _groups(root, membership, controller):
            try:
                limit = int((folder / limit_name).read_text())
                used = int((folder / used_name).read_text())
            except (OSError, ValueError):
                continue  # no such file, or "max"
            available = min(available, limit - used + _reclaimable(folder / "memory.stat"))
    return max(0, available)


def _groups(root: Path, membership: Path, controller: str) -> list[Path]:
    """Folders of this process's control group and of every group around it, the root first: a
    limit of any of them holds. controller: empty for version 2, which has one tree for all."""
    top = root / controller
    try:
        entries = [line.split(":", 2) for line in membership.read_text().splitlines()]
    except OSError:
        entries = []
    paths = [path for _, names, path in entries if controller in names.split(",")]
    inner = Path(paths[0].strip("/")) if paths else Path()
    if ".." in inner.parts:  # the group lies outside of what this container sees
        inner = Path()
    return [top, *(top / part for part in [*reversed(inner.parents), inner] if part != Path())]


def _reclaimable(stat: Path) -> int:
    """Files in the page cache count as used, but the kernel gives them back on demand."""
    try:
        counts = dict(line.split() for line in stat.read_text().splitlines())
        return int(counts["inactive_file"])
    except (OSError, ValueError, KeyError):
        return 0
