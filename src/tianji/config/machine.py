"""Reads the cores and the memory that this process may use: affinity mask and cgroup limits."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_SYSTEM = Path("/sys/devices/system")
_GROUPS = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")


@dataclass(frozen=True, slots=True)
class Machine:
    """Machine(cores=(0, 1), memory_bytes=24 << 30)"""

    cores: tuple[int, ...]
    """Usable core ids: the affinity mask, cut to the quota of the control group."""
    memory_bytes: int
    """Available memory: the smaller of free memory and the limit of the control group."""
    is_shared: bool = False
    """The quota covers only a part of the cores in the mask, so processes cannot be pinned."""
    nodes: tuple[tuple[int, ...], ...] = ()
    """Usable cores of each NUMA node; empty: one node."""
    siblings: tuple[tuple[int, ...], ...] = ()
    """Usable hyper-threads of each core that has several; empty: no core has."""


def machine_from_json(text: str) -> Machine:
    """Return a Machine of another host, which has sent its fields as JSON."""
    facts = json.loads(text)
    return Machine(
        cores=tuple(facts["cores"]),
        memory_bytes=facts["memory_bytes"],
        is_shared=facts["is_shared"],
        nodes=tuple(map(tuple, facts["nodes"])),
        siblings=tuple(map(tuple, facts["siblings"])),
    )


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
    """Return these cores by NUMA node; all in one node if the system does not say."""
    folders = sorted(system.glob("node/node*"), key=lambda path: (len(path.name), path.name))
    nodes = [_among(cores, folder / "cpulist") for folder in folders]
    if sum(map(len, nodes)) != len(cores):
        return (tuple(cores),)
    return tuple(node for node in nodes if node)


def hyper_threads(cores: Sequence[int], system: Path = _SYSTEM) -> tuple[tuple[int, ...], ...]:
    """Return the groups of two or more of these that are threads of one core."""
    lists = (system / f"cpu/cpu{core}/topology/thread_siblings_list" for core in cores)
    groups = dict.fromkeys(_among(cores, path) for path in lists)
    return tuple(group for group in groups if len(group) > 1)


def _among(cores: Sequence[int], listed: Path) -> tuple[int, ...]:
    """Return the cores that a kernel file such as `0-3,8` lists; none if it is unreadable."""
    try:
        ranges = [part.split("-") for part in listed.read_text().strip().split(",") if part]
        named = {core for ends in ranges for core in range(int(ends[0]), int(ends[-1]) + 1)}
    except (OSError, ValueError):
        return ()
    return tuple(core for core in cores if core in named)


def cpu_quota(root: Path = _GROUPS, membership: Path = _MEMBERSHIP) -> float | None:
    """Return the cores that the control group and its parents allow; None without a limit."""
    files = {"": ("cpu.max",), "cpu": ("cpu.cfs_quota_us", "cpu.cfs_period_us")}
    found = _numbers(root, membership, files)
    return min((limit / period for _, limit, period in found if limit > 0), default=None)


def memory_available_bytes(root: Path = _GROUPS, membership: Path = _MEMBERSHIP) -> int:
    """Return the available memory: the least of the machine, the control group and its parents."""
    available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        available = next(int(x.split()[1]) * 1024 for x in lines if x.startswith("MemAvailable"))
    files = {
        "": ("memory.max", "memory.current"),
        "memory": ("memory.limit_in_bytes", "memory.usage_in_bytes"),
    }
    for folder, limit, used in _numbers(root, membership, files):
        available = min(available, limit - used + _reclaimable(folder / "memory.stat"))
    return max(0, available)


def _numbers(
    root: Path, membership: Path, files: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[Path, int, int]]:
    """Yield the folder of every control group, and the two numbers in its files.

    files: by controller; version 2 has one tree, without a name. A group without a limit, or
    without the files, is left out.
    """
    for controller, names in files.items():
        for folder in _groups(root, membership, controller):
            try:
                words = " ".join((folder / name).read_text() for name in names).split()
                first, second = map(int, words)
            except (OSError, ValueError):
                continue
            yield folder, first, second


def _groups(root: Path, membership: Path, controller: str) -> list[Path]:
    """Return the folders of this process's control group and its parents, the root first.

    The limits of all of them apply. controller: empty for version 2, which has one tree.
    """
    top = root / controller
    try:
        entries = [line.split(":", 2) for line in membership.read_text().splitlines()]
    except OSError:
        entries = []
    paths = [path for _, names, path in entries if controller in names.split(",")]
    inner = Path(paths[0].strip("/")) if paths else Path()
    if ".." in inner.parts:  # the group is not visible in this container
        inner = Path()
    return [top, *(top / part for part in [*reversed(inner.parents), inner] if part != Path())]


def _reclaimable(stat: Path) -> int:
    """Return the page cache that counts as used, but that the kernel frees on demand."""
    try:
        counts = dict(line.split() for line in stat.read_text().splitlines())
        return int(counts["inactive_file"])
    except (OSError, ValueError, KeyError):
        return 0
