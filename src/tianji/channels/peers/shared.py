"""Peers in shared memory: learners in processes of one host add up their gradients.

Each rank copies its values into a part of its own and says so; when all have come, each adds up the
parts in the order of the ranks. The sums are those of ranks in one process (inproc.py), to the bit.
Where the values are many, each rank adds up a slice, and all of them collect the slices.

Nothing leaves the host, and nothing listens. Over TCP a reduction of a small network takes several
times as long as the update itself (decision 0027).
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable, Sequence

import numpy as np
from torch import Tensor

from tianji.channels.memory import Bell, Seat, Segment, is_seat_taken, new_fence
from tianji.channels.peers.cards import Cards
from tianji.channels.peers.gloo import LIFE_S, LOOPBACK
from tianji.channels.peers.interface import adds_slices
from tianji.errors import ReduceBroken
from tianji.types import Array

HALF_BYTES = 2 << 20
"""Bytes that are added up at once. A part has two halves, which take turns."""
_STEP, _LEFT, _BELL_OFFSET = 0, 1, 64
_HEADER_BYTES = mmap.PAGESIZE
SEAT = 0


class _Part:
    """The memory of one rank: how far it has come, its bell, and two halves for its values."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self.words = segment.words(0, 2)
        self.bell = Bell(segment, _BELL_OFFSET)
        memory = np.frombuffer(segment.memory, np.uint8)[_HEADER_BYTES:]
        self.halves = memory[:HALF_BYTES], memory[HALF_BYTES:]

    def is_taken(self) -> bool:
        """Return whether the process of its rank lives."""
        return is_seat_taken(self._segment, SEAT)


def _take_part(fd: int) -> tuple[_Part, Seat]:
    """Sit down at this rank's part, which may be that of a process before."""
    nbytes = _HEADER_BYTES + 2 * HALF_BYTES
    is_new = os.fstat(fd).st_size == 0
    segment = Segment.allocate(fd, "gradients", nbytes) if is_new else Segment.attach(fd)
    seat = Seat(segment, SEAT, "a learner at this part of the sums")
    part = _Part(segment)
    part.bell.initialise()
    # Before this rank's card is posted: whoever has met it counts from 0. A rank that still waits
    # for the process before waits on, until it sees that card.
    part.words[_STEP] = part.words[_LEFT] = 0
    return part, seat


class SharedPeers:
    """One rank's end. It sleeps while it waits, and shows life from time to time."""

    host = LOOPBACK

    def __init__(
        self,
        cards: Cards,
        fds: Sequence[int],
        timeout_s: float,
        show_life: Callable[[], None] = lambda: None,
    ) -> None:
        """Meet the others, however late they start. fds: the parts of all ranks, empty at first.
        timeout_s, show_life: as for GlooPeers."""
        self.rank = cards.rank
        self.num_ranks = cards.num_ranks
        self.cards = cards
        self.timeout_s = timeout_s
        self._show_life = show_life
        self._fence = new_fence()
        self._own, self._seat = _take_part(fds[self.rank])
        self.name = cards.agree(show_life)
        attached = [_Part(Segment.attach(fd)) for fd in fds]
        self._parts = [self._own if n == self.rank else part for n, part in enumerate(attached)]
        self._others = [part for part in self._parts if part is not self._own]
        self._step = self._num_chunks = 0
        self._is_open = True

    def add(self, values: Tensor) -> None:
        if not self._is_open:
            raise ReduceBroken("The learners of the groups are no longer connected.")
        on_host = values.cpu() if values.is_cuda else values
        flat: Array = on_host.detach().view(-1).numpy()
        most = HALF_BYTES // flat.itemsize
        for start in range(0, len(flat), most):
            self._add_chunk(flat[start : start + most])
        if values.is_cuda:
            values.copy_(on_host)

    def _add_chunk(self, values: Array) -> None:
        """Add up what fits into a half. The other half may still be read by ranks that are behind;
        this one is free, because every rank has come to the chunk before."""
        self._num_chunks += 1
        half = self._num_chunks % 2
        parts = [part.halves[half][: values.nbytes].view(values.dtype) for part in self._parts]
        own = parts[self.rank]
        own[:] = values
        self._come()
        if not adds_slices(values.nbytes, self.num_ranks):
            _add_up(parts, values)
            return
        slices = [self._slice(rank, len(values)) for rank in range(self.num_ranks)]
        mine = slices[self.rank]  # nobody else reads this slice of this part before it is the sum
        _add_up([part[mine] for part in parts], values[mine])
        own[mine] = values[mine]
        self._come()
        for rank, piece in enumerate(slices):
            values[piece] = parts[rank][piece]

    def _slice(self, rank: int, count: int) -> slice:
        return slice(count * rank // self.num_ranks, count * (rank + 1) // self.num_ranks)

    def _come(self) -> None:
        """Say that what was written is there, and wait until all others have come as far. Whoever
        comes last wakes them."""
        self._step += 1
        self._fence()
        self._own.words[_STEP] = self._step
        self._fence()
        if self._have_come():
            for part in self._others:
                part.bell.wake()
        else:
            self._wait()
        self._fence()

    def _have_come(self) -> bool:
        step = self._step
        return all(part.words[_STEP] >= step for part in self._others)

    def _wait(self) -> None:
        bell, until_s = self._own.bell, time.monotonic() + self.timeout_s
        while True:
            bell.arm()
            if self._have_come():
                return
            is_rung = bell.wait(LIFE_S)
            if self._have_come():
                return
            if why := self._why_not(is_rung, until_s):
                self.close()
                raise ReduceBroken(
                    f"The learners of {self.num_ranks} groups cannot add up their gradients: one "
                    f"has ended, or has not come for {self.timeout_s:g} s ({why})."
                )
            self._show_life()

    def _why_not(self, is_rung: bool, until_s: float) -> str:
        """Return why a rank will not come; "" while it may."""
        if any(part.words[_LEFT] for part in self._others):
            return "another one has left"
        if is_rung:
            return ""
        if not all(part.is_taken() for part in self._others):
            return "another one has died"
        if self.cards.has_left(self.name):
            return "another one has started again"
        return "it is late" if time.monotonic() > until_s else ""

    def close(self) -> None:
        """Leave the group: ranks that still wait for this one are told so."""
        if self._is_open:
            self._is_open = False
            self._own.words[_LEFT] = 1
            for part in self._others:
                part.bell.ring()
            self._seat.leave()


def _add_up(parts: Sequence[Array], out: Array) -> None:
    """Write the sum of the parts, in their order."""
    np.add(parts[0], parts[1], out=out)
    for part in parts[2:]:
        np.add(out, part, out=out)
