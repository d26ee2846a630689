"""Combination: mixes the parameters of a learner with those of other groups, every few updates.

Takes      the latest parameters and statistics of its peers (Boards)
Gives      its own, before it mixes (Board)
Waits for  nothing: a peer that has posted nothing since the last mix is left out, and one that
           restarts comes back with the parameters of its peers
Unblocked  by its learner's updates
Stops      with its learner

`average` reads all other groups, `gossip` the group before it in a ring (Assran et al. 2019, GALA):

    own <- mean(own, peers that have posted since the last mix)

The running statistics of observations and rewards are mixed in the same way. The optimiser's state
stays the group's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from tianji.channels.interface import BoardReader, BoardWriter, Bytes
from tianji.models.moments import RunningMoments, Statistics
from tianji.models.tensors import FlatParameters
from tianji.ops.returns import Floats


class Copy(NamedTuple):
    """A copy of what groups mix, as bytes and as the numbers in them."""

    payload: Bytes
    moments_M: NDArray[np.float64]
    """The moments of all statistics."""
    vector_P: Floats
    """The parameters."""


class MixedState:
    """What groups mix: the moments of all running statistics, and the parameters."""

    def __init__(self, parameters: FlatParameters, statistics: Sequence[Statistics]) -> None:
        self._vector_P = parameters.vector_P
        self._sum_P = np.empty(len(self._vector_P), np.float32)
        self._statistics = statistics
        self._sizes = [len(statistic.moments.mean_F) for statistic in statistics]
        self._num_moments = sum(1 + 2 * size for size in self._sizes)
        self.nbytes = 8 * self._num_moments + 4 * len(self._vector_P)

    def new_copy(self) -> Copy:
        """Return memory for a copy."""
        payload, border = np.zeros(self.nbytes, np.uint8), 8 * self._num_moments
        return Copy(payload, payload[:border].view(np.float64), payload[border:].view(np.float32))

    def write_to(self, copy: Copy) -> None:
        """Copy the present state out."""
        moments = [statistic.moments for statistic in self._statistics]
        if moments:
            parts = [part for m in moments for part in ([m.count], m.mean_F, m.m2_F)]
            np.concatenate(parts, out=copy.moments_M)
        torch.from_numpy(copy.vector_P).copy_(self._vector_P)

    def take_mean(self, copies: Sequence[Copy]) -> None:
        """Become the mean of these states, in place: every view of the parameters sees it.

        Groups that take the mean of the same states in the same order are equal to the bit.
        """
        first, *others = copies
        self._sum_P[:] = first.vector_P
        for other in others:
            self._sum_P += other.vector_P
        self._sum_P /= np.float32(len(copies))
        self._vector_P.copy_(torch.from_numpy(self._sum_P))
        if self._statistics:
            self._take_mean_moments([self._moments(copy.moments_M) for copy in copies])

    def _take_mean_moments(self, everybody: Sequence[Sequence[RunningMoments]]) -> None:
        for i, statistic in enumerate(self._statistics):
            statistic.moments.take_mean([moments[i] for moments in everybody])
            statistic.use_moments()

    def _moments(self, moments_M: NDArray[np.float64]) -> list[RunningMoments]:
        found, begin = [], 0
        for size in self._sizes:
            count, mean_F, m2_F = np.split(moments_M[begin : begin + 1 + 2 * size], [1, 1 + size])
            found.append(RunningMoments(float(count[0]), mean_F, m2_F))
            begin += 1 + 2 * size
        return found


class Combination:
    """`after_update` posts when a mix is due; `mix` is then the learner's next tick. Between the
    two every group can read what the others have posted: groups that take turns in one process
    mix the same states."""

    def __init__(
        self,
        group: int,
        state: MixedState,
        board: BoardWriter,
        peers: Mapping[int, BoardReader],
        every: int,
        posted: int = 0,
    ) -> None:
        """board: where this group posts. peers: the boards that it reads, by group. every: updates
        between two mixes. posted: posts on the board by a learner before this one."""
        self._group = group
        self._state = state
        self._board = board
        self._peers = peers
        self._every = every
        self._posted = posted
        self._updates = 0
        self._latest = {known: state.new_copy() for known in (group, *peers)}
        """The latest state of each group, its own included."""
        self._read = dict.fromkeys(peers, -1)
        """The post that was read last, by group."""
        self.is_due = False

    def after_update(self) -> None:
        """Count an update; post the state if it is to be mixed now."""
        self._updates += 1
        if self._updates % self._every == 0:
            self._state.write_to(self._latest[self._group])
            self._board.post(self._posted, self._write)
            self._posted += 1
            self.is_due = True

    def _write(self, payload: Bytes) -> None:
        payload[:] = self._latest[self._group].payload

    def mix(self) -> None:
        """Become the mean of the state that was posted and the latest of the peers."""
        self.is_due = False
        if peers := self._read_peers():
            self._take_mean([self._group, *peers])

    def catch_up(self) -> bool:
        """Become the mean of the peers alone: a learner that was restarted comes from an old
        checkpoint and would pull them back. Return whether there were any."""
        peers = self._read_peers()
        if peers:
            self._take_mean(peers)
        return bool(peers)

    def _read_peers(self) -> list[int]:
        """Read the posts that are new; return the groups that have made them. A post is mixed once:
        taken again and again, that of a slow peer would hold this group back."""
        fresh = []
        for peer, board in self._peers.items():
            if board.version() > self._read[peer]:
                self._read[peer] = board.latest(partial(self._keep, peer))
                fresh.append(peer)
        return fresh

    def _take_mean(self, groups: list[int]) -> None:
        self._state.take_mean([self._latest[group] for group in sorted(groups)])

    def _keep(self, peer: int, payload: Bytes) -> None:
        self._latest[peer].payload[:] = payload
