"""Combination: mixes the parameters of a learner with those of other groups, every few updates.

Takes      the latest parameters and statistics of its peers (Boards)
Gives      its own, before it mixes (Board)
Waits for  nothing in a mix: a peer that has posted nothing since the last one is left out, and one
           that restarts comes back with the parameters of its peers; before a batch, for a peer
           that was left out too often, if there is a bound (ages.py)
Unblocked  by its learner's updates; by a post of that peer, or when it is given up
Stops      with its learner

`average` reads all other groups, `gossip` the group before it in a ring (Assran et al. 2019, GALA):

    own <- mean(own, peers that have posted since the last mix)

The running statistics of observations and rewards are mixed in the same way. The optimiser's state
stays the group's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from tianji.channels.interface import BoardReader, BoardWriter, Bytes
from tianji.learner.ages import Ages
from tianji.models.moments import RunningMoments, Statistics
from tianji.models.tensors import FlatParameters
from tianji.ops.returns import Floats
from tianji.records import PeerAge


class MixedState:
    """What groups mix: the moments of all running statistics, and the parameters.

    state.write_to(payload)                     # the bytes that others read
    state.begin()
    state.add_own(); state.add(payload)         # in the same order in all groups
    state.take_mean()
    """

    def __init__(self, parameters: FlatParameters, statistics: Sequence[Statistics]) -> None:
        self._vector_P = parameters.vector_P
        size = len(self._vector_P)
        # On a GPU the parameters are mixed in host memory.
        self._is_on_host = self._vector_P.device.type == "cpu"
        self._own_P: Floats = (
            self._vector_P.numpy() if self._is_on_host else np.empty(size, np.float32)
        )
        self._sum_P: Floats = np.empty(size, np.float32)
        self._count = 0
        self._statistics = statistics
        self._sizes = [len(statistic.moments.mean_F) for statistic in statistics]
        self._border = 8 * sum(1 + 2 * size for size in self._sizes)
        self._added: list[list[RunningMoments]] = []
        self.nbytes = self._border + 4 * size

    def write_to(self, payload: Bytes) -> None:
        """Write the present state."""
        if self._statistics:
            moments = [statistic.moments for statistic in self._statistics]
            parts = [part for m in moments for part in ([m.count], m.mean_F, m.m2_F)]
            np.concatenate(parts, out=payload[: self._border].view(np.float64))
        payload[self._border :].view(np.float32)[:] = self._present()

    def _present(self) -> Floats:
        if not self._is_on_host:
            torch.from_numpy(self._own_P).copy_(self._vector_P)
        return self._own_P

    def begin(self) -> None:
        """Begin a mean: nothing was added."""
        self._count = 0
        self._added = []

    def add_own(self) -> None:
        """Add the present state."""
        self._add(self._present())
        self._added.append([statistic.moments for statistic in self._statistics])

    def add(self, payload: Bytes) -> None:
        """Add what another group has written."""
        self._add(payload[self._border :].view(np.float32))
        if self._statistics:
            self._added.append(self._moments(payload[: self._border].view(np.float64).copy()))

    def _add(self, vector_P: Floats) -> None:
        if self._count:
            self._sum_P += vector_P
        else:
            self._sum_P[:] = vector_P
        self._count += 1

    def take_mean(self) -> None:
        """Become the mean of what was added, in place: every view of the parameters sees it.

        Groups that take the mean of the same states in the same order are equal to the bit.
        """
        np.divide(self._sum_P, np.float32(self._count), out=self._own_P)
        if not self._is_on_host:
            self._vector_P.copy_(torch.from_numpy(self._own_P))
        for i, statistic in enumerate(self._statistics):
            statistic.moments.take_mean([moments[i] for moments in self._added])
            statistic.use_moments()

    def parts(self, payload: Bytes) -> tuple[NDArray[np.float64], Floats]:
        """Return the numbers in a payload: moments, and parameters."""
        return payload[: self._border].view(np.float64), payload[self._border :].view(np.float32)

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
        ages: Ages | None = None,
    ) -> None:
        """board: where this group posts. peers: the boards that it reads, by group. every: updates
        between two mixes. posted: posts on the board by a learner before this one. ages: of the
        peers' states; without it, the group waits for nobody."""
        self._group = group
        self._state = state
        self._board = board
        self._peers = peers
        self._every = every
        self._posted = posted
        self._updates = 0
        self._read = dict.fromkeys(peers, -1)
        """The post that was read last, by group."""
        self._ages = ages or Ages(peers)
        self.is_due = False

    def after_update(self) -> None:
        """Count an update; post the state if it is to be mixed now."""
        self._updates += 1
        if self._updates % self._every == 0:
            self._board.post(self._posted, self._state.write_to)
            self._posted += 1
            self.is_due = True

    def mix(self, version: int) -> None:
        """Become the mean of the state that was posted and the latest of the peers. The state has
        not changed since then: a mix is the tick after the update. version: the one in work."""
        self.is_due = False
        fresh = self._fresh()
        self._ages.count(fresh, version)
        if fresh:
            self._take_mean([self._group, *fresh])

    def hold_back(self) -> bool:
        """Return whether to wait for a peer before the next batch."""
        return self._ages.hold_back(self._fresh())

    @property
    def is_waiting(self) -> bool:
        """Return whether the last `hold_back` said to wait."""
        return self._ages.is_waiting

    def record(self, waited_s: float) -> PeerAge:
        """Return how old the peers' states were in the mixes so far."""
        return self._ages.record(waited_s)

    def catch_up(self) -> bool:
        """Become the mean of the peers alone: a learner that was restarted comes from an old
        checkpoint and would pull them back. Return whether there were any."""
        fresh = self._fresh()
        if fresh:
            self._take_mean(fresh)
        return bool(fresh)

    def _fresh(self) -> list[int]:
        """Return the groups with a post that was not mixed yet. Mixed again and again, the post of
        a slow peer would hold this group back."""
        return [peer for peer, board in self._peers.items() if board.version() > self._read[peer]]

    def _take_mean(self, groups: list[int]) -> None:
        while not self._add_up(sorted(groups)):
            pass
        self._state.take_mean()

    def _add_up(self, groups: list[int]) -> bool:
        """Add up states where they lie; return False if one was overwritten meanwhile."""
        self._state.begin()
        for group in groups:
            if group == self._group:
                self._state.add_own()
                continue
            num_reads = 0

            def read(payload: Bytes) -> None:
                nonlocal num_reads
                num_reads += 1
                self._state.add(payload)

            self._read[group] = self._peers[group].latest(read)
            if num_reads > 1:
                return False
        return True
