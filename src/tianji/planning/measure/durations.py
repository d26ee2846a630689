"""Durations of work without the waits that other programs cause, and one figure from many.

On a shared machine a process is sometimes ready to run and waits for a core. The system counts that
time per thread. It is read after every stretch of work, and a stretch with such a wait is left out:
a cost is what the work takes, not what other programs do. Work that sleeps may wait whenever it
wakes up; there, the wait is subtracted from the longest duration of the stretch.

A run is as fast as the mean of what it does, rare slow steps included, while a median ignores
moments in which the machine was busy. So durations are averaged in blocks, and the figure is the
median of the blocks.

`ProcessFamily` reads memory and processor time of this process and of those that it has started.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tianji.costs.profile import Cost
from tianji.observe.processes import read_process

Rows: TypeAlias = NDArray[np.float64]
Floats: TypeAlias = Sequence[float] | Rows

STRETCH_S = 0.001  # shorter than the time for which the system gives a core away
LOOKING_SHARE = 0.1  # share of the time that reading the waits may take
DISTURBED_SHARE = 0.02
NUM_BLOCKS = 16
FEWEST_BLOCKS = 4  # fewer say nothing about noise
STABLE_NOISE = 0.03


class CoreWait:
    """Reads how long the threads of this process were ready to run and had no core."""

    def __init__(self) -> None:
        self._fds: list[int] = []

    def refresh(self) -> None:
        """Look for threads that have started since."""
        self.close()
        for task in sorted(os.listdir("/proc/self/task"), key=int):  # the main thread is the first
            with contextlib.suppress(OSError):  # it has ended, or the system does not count
                self._fds.append(os.open(f"/proc/self/task/{task}/schedstat", os.O_RDONLY))

    def read(self) -> tuple[float, float]:
        """Return the seconds that the main thread, and all threads, have waited so far."""
        waited = [_read_s(fd) for fd in self._fds]
        return sum(waited[:1]), sum(waited)

    def free_s(self) -> float:
        """Return the time of a clock that stops while the main thread waits for a core."""
        return time.monotonic() - sum(map(_read_s, self._fds[:1]))

    def close(self) -> None:
        while self._fds:
            os.close(self._fds.pop())


def _read_s(fd: int) -> float:
    with contextlib.suppress(OSError):
        return int(os.pread(fd, 64, 0).split()[1]) / 1e9
    return 0.0


class Piece(NamedTuple):
    """One duration, a part of it that is of interest, and whether it is of a special kind."""

    seconds: float
    part_s: float = 0.0
    is_special: bool = False


class Durations:
    """Collects pieces of work in stretches, and tells which stretches were disturbed."""

    def __init__(self, core_wait: CoreWait) -> None:
        self._core_wait = core_wait
        self._pieces: list[Piece] = []
        self._is_quiet: list[bool] = []
        self._stretch: list[Piece] = []
        self._waited = (0.0, 0.0)
        self._began_s = self._next_look_s = 0.0

    def __len__(self) -> int:
        return len(self._pieces) + len(self._stretch)

    def clear(self, keep: int = 0) -> None:
        """Forget all but the newest pieces."""
        self.begin()
        for entries in (self._pieces, self._is_quiet):
            del entries[: len(entries) - keep]

    def add(self, piece: Piece) -> None:
        self._stretch.append(piece)
        if time.monotonic() >= self._next_look_s:
            self.begin()

    def begin(self) -> None:
        """End the stretch, decide whether it was disturbed, and begin the next one."""
        now_s, before = time.monotonic(), self._waited
        main_s, all_s = self._waited = self._core_wait.read()
        is_quiet = all_s - before[1] <= DISTURBED_SHARE * (now_s - self._began_s)
        self._is_quiet += [is_quiet] * len(self._stretch)
        self._pieces += _without_wait(self._stretch, main_s - before[0])
        self._stretch = []
        self._began_s = time.monotonic()
        looking_s = self._began_s - now_s
        self._next_look_s = self._began_s + max(STRETCH_S, looking_s / LOOKING_SHARE)

    def rows(self, is_waiting: bool = False) -> Rows:
        """Return the pieces of undisturbed stretches, one per row.

        All pieces, without their waits, if the work sleeps or if every stretch was disturbed.
        """
        self.begin()
        rows = np.array(self._pieces, np.float64).reshape(-1, len(Piece._fields))
        quiet = np.compress(self._is_quiet, rows, axis=0)
        return rows if is_waiting or not len(quiet) else quiet

    def figure(self) -> Figure:
        return figure_of(self.rows()[:, 0], 1)


def _without_wait(pieces: list[Piece], waited_s: float) -> list[Piece]:
    """Subtract a wait from the longest piece, if it fits; else it lay between the pieces."""
    if not pieces or waited_s <= 0:
        return pieces
    longest = max(pieces, key=lambda piece: piece.seconds)
    left = 1 - waited_s / longest.seconds
    if left > 0:
        shorter = longest._replace(seconds=left * longest.seconds, part_s=left * longest.part_s)
        pieces[pieces.index(longest)] = shorter
    return pieces


class Figure(NamedTuple):
    """The duration of a piece of work.

    noise: half of the interquartile range of the blocks, divided by the median.
    """

    median_s: float
    noise: float
    num_blocks: int

    @property
    def is_stable(self) -> bool:
        """Return whether the standard error of the median is small."""
        if self.num_blocks < FEWEST_BLOCKS:
            return False
        # For normal noise the range is 1.35 deviations, and a median's error 1.25 of a mean's.
        error = 1.25 * 2 * self.noise / 1.35 / math.sqrt(self.num_blocks)
        return error < STABLE_NOISE

    def to_cost(self, busy_cores: float) -> Cost:
        """Return the cost of work that keeps this many cores busy; its load is not known yet."""
        seconds = self.median_s
        return Cost(alone_s=seconds, loaded_s=seconds, cpu_s=busy_cores * seconds, noise=self.noise)


def figure_of(durations_s: Floats, per_piece: int, is_waiting: bool = False) -> Figure:
    """Return the figure for `per_piece` durations in a row.

    Blocks hold whole pieces if there are enough; else the piece is scaled up from what was seen.
    is_waiting: the work sleeps sometimes. Then the mean of all is the figure: most blocks may hold
    no sleep at all, and their median would leave out what takes most of the time.
    """
    values = np.asarray(durations_s, np.float64)
    assert len(values), "nothing was measured"
    num_pieces = len(values) // per_piece
    if num_pieces >= FEWEST_BLOCKS:
        block = max(1, num_pieces // NUM_BLOCKS) * per_piece
    else:
        block = max(1, len(values) // FEWEST_BLOCKS)
    num_blocks = len(values) // block
    means = values[len(values) - num_blocks * block :].reshape(num_blocks, block).mean(axis=1)
    low, median, high = np.percentile(means, (25, 50, 75))
    if is_waiting:
        median = values.mean()
    noise = (high - low) / 2 / median if median > 0 else 0.0
    return Figure(float(median) * per_piece, float(noise), num_blocks)


def unevenness(durations_s: Floats) -> float:
    """Return the 99th percentile divided by the median."""
    if not len(durations_s):
        return 1.0
    median, late = np.percentile(durations_s, (50, 99))
    return float(late / median) if median > 0 else 1.0


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
