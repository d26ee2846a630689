"""What the system knows of a process: its memory, its processor time, its time without a core."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from typing import NamedTuple

from tianji.types import RoleKind

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
    """Its first thread was ready to run and had no core."""


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


class ThreadUse(NamedTuple):
    """What a thread has used since it began."""

    core_ns: int
    no_core_ns: int


def read_thread(pid: int, thread: int) -> ThreadUse | None:
    """Return None where this process has no such thread, or the kernel does not count."""
    try:
        words = _read(f"/proc/{pid}/task/{thread}/schedstat").split()
        return ThreadUse(int(words[0]), int(words[1]))
    except (OSError, ValueError, IndexError):
        return None


class Seat(NamedTuple):
    """The thread that a role runs on: Seat("actor", 4711)."""

    kind: RoleKind
    thread: int
    """As the system numbers it; 0 before the role runs."""


TAKES_OTHERS: tuple[RoleKind, ...] = ("actor", "learner", "buffer", "inference", "evaluator")
"""Kinds of roles, in the order in which they answer for the other threads of their process. Where
actors and a learner share one, those are mostly the threads of the emulator."""


class ProcessTimes:
    """Adds up the times of each role, from all processes that its worker has had.

    A role has the time of its thread. Threads beside them (of an emulator, of torch) count for the
    roles that TAKES_OTHERS names first. Roles of one kind that share a thread share its time. A
    process whose roles are not known has its times under the name of its worker.
    """

    def __init__(self) -> None:
        self._last: dict[int, ProcessUse] = {}
        self._last_thread: dict[int, ThreadUse] = {}
        self._homes: dict[int, int] = {}
        """The process of each thread."""
        self._others_ns: dict[int, int] = {}
        """Most that was seen of the other threads of each process. The time of a process comes in
        ticks and that of a thread does not, so that the difference goes up and down a little."""
        self.core_ns: dict[str, int] = {}
        self.no_core_ns: dict[str, int] = {}
        self.resident_bytes: dict[str, int] = {}

    def look(self, pids: Mapping[str, int], seats: Mapping[str, Seat] | None = None) -> None:
        """pids: the process of each worker. seats: where each role runs."""
        seats = seats or {}
        self._find_homes(pids, seats)
        self.resident_bytes = {}
        for worker, pid in pids.items():
            use = read_process(pid)
            if use is None:
                continue
            self.resident_bytes[worker] = use.resident_bytes
            last = self._last.get(pid, ProcessUse(0, 0, 0))
            self._last[pid] = use
            held = {n: seat for n, seat in seats.items() if self._homes.get(seat.thread) == pid}
            if held:
                threads = self._grown({seat.thread for seat in held.values()})
                self._share(self._grown_beside(pid, use.core_ns, threads), held, threads)
            else:
                core_ns = use.core_ns - last.core_ns
                self._add(worker, core_ns, use.no_core_ns - last.no_core_ns)

    def _find_homes(self, pids: Mapping[str, int], seats: Mapping[str, Seat]) -> None:
        alive = set(pids.values())
        self._homes = {thread: pid for thread, pid in self._homes.items() if pid in alive}
        for _, thread in seats.values():
            if thread and thread not in self._homes:
                # The first thread of a process has its number.
                places = [thread] if thread in alive else alive
                homes = (pid for pid in places if read_thread(pid, thread) is not None)
                if (home := next(homes, None)) is not None:
                    self._homes[thread] = home

    def _grown(self, threads: Set[int]) -> dict[int, ThreadUse]:
        """Return what each thread has used since the last look; nothing at the first."""
        found = {}
        for thread in threads:
            use = read_thread(self._homes[thread], thread) or ThreadUse(0, 0)
            last = self._last_thread.get(thread, use)
            self._last_thread[thread] = use
            grown = use.core_ns - last.core_ns, use.no_core_ns - last.no_core_ns
            found[thread] = ThreadUse(max(0, grown[0]), max(0, grown[1]))
        return found

    def _grown_beside(self, pid: int, core_ns: int, threads: Iterable[int]) -> int:
        """Return what other threads of a process than these have used since the last look."""
        beside_ns = core_ns - sum(self._last_thread[thread].core_ns for thread in threads)
        before_ns = self._others_ns.get(pid, beside_ns)
        self._others_ns[pid] = max(before_ns, beside_ns)
        return self._others_ns[pid] - before_ns

    def _share(
        self, others_ns: int, held: Mapping[str, Seat], threads: Mapping[int, ThreadUse]
    ) -> None:
        """Give each thread's time to its roles, and the rest of the process to those who answer
        for it."""
        for role in _first(held):
            self._add(role, others_ns // len(_first(held)), 0)
        for thread, use in threads.items():
            mine = _first({name: seat for name, seat in held.items() if seat.thread == thread})
            for role in mine:
                self._add(role, use.core_ns // len(mine), use.no_core_ns)

    def _add(self, name: str, core_ns: int, no_core_ns: int) -> None:
        self.core_ns[name] = self.core_ns.get(name, 0) + core_ns
        self.no_core_ns[name] = self.no_core_ns.get(name, 0) + no_core_ns


def _first(held: Mapping[str, Seat]) -> list[str]:
    """Return the roles of the kind that TAKES_OTHERS names first."""
    kinds = {seat.kind for seat in held.values()}
    first = next(kind for kind in TAKES_OTHERS if kind in kinds)
    return [name for name, seat in held.items() if seat.kind == first]
