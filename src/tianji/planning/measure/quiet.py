"""Durations without what other programs add to them.

On a machine that others use too, a process is now and then ready to run and has to wait for a core.
The system counts that time, per thread. It is looked at after every stretch of work, and a stretch
with such a wait in it is left out: a cost is what the work takes, not what the neighbours do.

Work that sleeps can be kept waiting whenever it wakes up, and to leave all of that out would leave
what does not sleep. There, the wait is taken off the longest duration of the stretch.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Rows: TypeAlias = NDArray[np.float64]
"""Pieces, one in each row."""
STRETCH_S = 0.001
"""Shorter than the time for which the system gives a core away."""
LOOKING_SHARE = 0.1
"""Of the time, what looking may take; with many threads it takes longer."""
DISTURBED_SHARE = 0.02


class Waited(NamedTuple):
    """Seconds without a core since the threads started."""

    main_s: float
    others_s: float

    def __sub__(self, other: Waited) -> Waited:
        return Waited(self.main_s - other.main_s, self.others_s - other.others_s)


class CoreWait:
    """How long the threads of this process were ready to run and had no core."""

    def __init__(self) -> None:
        self._fds: list[int] = []

    def refresh(self) -> None:
        """Look for threads that have started since."""
        self.close()
        for task in sorted(os.listdir("/proc/self/task"), key=int):  # the main thread is the first
            with contextlib.suppress(OSError):  # it has ended, or the system does not count
                self._fds.append(os.open(f"/proc/self/task/{task}/schedstat", os.O_RDONLY))

    def read(self) -> Waited:
        return Waited(sum(map(_read_s, self._fds[:1])), sum(map(_read_s, self._fds[1:])))

    def free_s(self) -> float:
        """A clock that stands still while the main thread is kept from its core."""
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
    """Durations as they were, without waits, and whether there were any."""

    def __init__(self, core_wait: CoreWait) -> None:
        self._core_wait = core_wait
        self._raw: list[Piece] = []
        self._cleaned: list[Piece] = []
        self._is_quiet: list[bool] = []
        self._waited = Waited(0.0, 0.0)
        self._looked_s = self._next_look_s = 0.0

    def __len__(self) -> int:
        return len(self._raw)

    def clear(self) -> None:
        for entries in (self._raw, self._cleaned, self._is_quiet):
            entries.clear()
        self.begin()

    def begin(self) -> None:
        """What was waited before now has nothing to do with the next stretch."""
        self._judge()

    def add(self, piece: Piece) -> None:
        self._raw.append(piece)
        if time.monotonic() >= self._next_look_s:
            self._judge()

    def end(self, piece: Piece) -> None:
        """A stretch of its own, since `begin`."""
        self._raw.append(piece)
        self._judge()

    def keep_last(self) -> None:
        """Forget all but the newest."""
        for entries in (self._raw, self._cleaned, self._is_quiet):
            del entries[:-1]

    def _judge(self) -> None:
        """End a stretch, and say what its durations are worth."""
        now_s, waited_before = time.monotonic(), self._waited
        self._waited = self._core_wait.read()
        waited = self._waited - waited_before
        fresh = self._raw[len(self._cleaned) :]
        is_quiet = sum(waited) <= DISTURBED_SHARE * (now_s - self._looked_s)
        self._is_quiet += [is_quiet] * len(fresh)
        self._cleaned += _without(fresh, waited.main_s)
        self._looked_s = time.monotonic()
        looking_s = self._looked_s - now_s
        self._next_look_s = self._looked_s + max(STRETCH_S, looking_s / LOOKING_SHARE)

    def raw(self) -> Rows:
        """As they were: where there are more threads than cores, to wait is part of the work."""
        return _rows(self._raw)

    def cleaned(self) -> Rows:
        """All of them, without the main thread's waits."""
        self._judge()
        return _rows(self._cleaned)

    def quiet(self) -> Rows:
        """Those of stretches without a wait."""
        self._judge()
        return np.compress(self._is_quiet, _rows(self._cleaned), axis=0)


def median_s(durations: Durations) -> float:
    """Of the quiet ones, or of all without their waits."""
    quiet = durations.quiet()
    return float(np.median((quiet if len(quiet) else durations.cleaned())[:, 0]))


def _rows(pieces: list[Piece]) -> Rows:
    return np.array(pieces, np.float64).reshape(-1, len(Piece._fields))


def _without(pieces: list[Piece], waited_s: float) -> list[Piece]:
    """A wait that does not fit into the longest one lay between them, or there were several."""
    if not pieces or waited_s <= 0:
        return pieces
    place = max(range(len(pieces)), key=lambda index: pieces[index].seconds)
    longest = pieces[place]
    if waited_s < longest.seconds:
        left = 1 - waited_s / longest.seconds
        shorter = longest._replace(seconds=left * longest.seconds, part_s=left * longest.part_s)
        pieces[place] = shorter
    return pieces
