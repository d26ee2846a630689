"""What /proc says about the processes of a run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def descendants(pid: int) -> list[int]:
    """The process and everything below it, parents first."""
    found = [pid]
    for parent in found:
        try:
            tasks = list((PROC / str(parent) / "task").iterdir())
            found += [int(c) for task in tasks for c in (task / "children").read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def cpu_s(pid: int) -> float:
    """Seconds of processor time so far, user and system, all threads."""
    after_name = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / TICKS_PER_S


def command_line(pid: int) -> list[str]:
    return (PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]


@dataclass(frozen=True)
class Memory:
    """Bytes a process holds: `own` is what would be free without it, `shared` the rest."""

    rss: int
    own: int

    @property
    def shared(self) -> int:
        return self.rss - self.own


def memory(pid: int) -> Memory:
    sizes: dict[str, int] = {}
    for line in (PROC / str(pid) / "smaps_rollup").read_text().splitlines()[1:]:
        name, _, rest = line.partition(":")
        sizes[name] = int(rest.split()[0]) * 1024
    return Memory(sizes["Rss"], sizes["Private_Clean"] + sizes["Private_Dirty"])


def memfd_bytes(pids: list[int]) -> dict[str, int]:
    """Bytes set aside by each memfd that the processes hold, by name and inode."""
    found: dict[str, int] = {}
    for pid in pids:
        try:
            links = list((PROC / str(pid) / "fd").iterdir())
        except FileNotFoundError:
            continue
        for link in links:
            try:
                target = os.readlink(link)
                if not target.startswith("/memfd:"):
                    continue
                status = link.stat()
            except FileNotFoundError:
                continue
            name = target.removeprefix("/memfd:").removesuffix(" (deleted)")
            found[f"{name}#{status.st_ino}"] = status.st_blocks * 512
    return found


def dev_shm_bytes() -> int:
    """What is in use of /dev/shm as a whole, by anybody."""
    status = os.statvfs("/dev/shm")
    return (status.f_blocks - status.f_bfree) * status.f_frsize
