"""Episodes: the progress of a run, read from the unrolls that have arrived."""

from __future__ import annotations

import numpy as np

from tianji.buffer.interface import Progress
from tianji.channels.interface import Receiver
from tianji.types import Episode, Stamp


class Episodes:
    """Collects the episodes that ended in unrolls, and counts steps; tells them in groups.

    episodes.add(stamp, slot)       # while the slot is ours
    episodes.tell()                 # all that were added since
    """

    def __init__(self, receiver: Receiver, progress: Progress, first_row: int = 0) -> None:
        """first_row: rows before it repeat the unroll before."""
        self._receiver = receiver
        self._progress = progress
        self._first_row = first_row
        self._found: list[tuple[tuple[int, int, int, int], Episode]] = []
        """Each with its place in time: round, row, actor, environment."""
        self._steps = 0

    def add(self, stamp: Stamp, slot: int) -> None:
        arrays, first = self._receiver.arrays, self._first_row
        lengths, returns = arrays["episode_length"][slot], arrays["episode_return"][slot]
        for row, env in np.argwhere(lengths[first:] > 0).tolist():
            at = row + first
            ended_ns = int(arrays["row_ns"][slot][at])
            length = int(lengths[at, env])
            episode = Episode(ended_ns, float(returns[at, env]), length, stamp.actor)
            self._found.append(((stamp.round, row, stamp.actor, env), episode))
        self._steps += stamp.env_steps

    def tell(self) -> None:
        """Tell the episodes in order of time, so that arrival times do not change the run's end."""
        self._found.sort(key=lambda found: found[0])
        self._progress.add([episode for _, episode in self._found], self._steps)
        self._found, self._steps = [], 0
