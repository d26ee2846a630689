"""Peers in one process: a thread for each rank, and a sum in the order of the ranks.

    team = InprocTeam(num_ranks=2, timeout_s=60.0)
    team.end(rank).add(gradient_P)            # in the thread of a rank; it waits for the others

With turns, one thread runs at a time: the turn goes to others until all have come. The sums are the
same.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from torch import Tensor

from tianji.channels.peers.turns import Turns
from tianji.errors import ReduceBroken


class InprocTeam:
    """The ranks of one process."""

    def __init__(
        self,
        num_ranks: int,
        timeout_s: float,
        turns: Turns | None = None,
        members: Sequence[int] = (),
    ) -> None:
        """timeout_s: the longest time that one rank may make the others wait, without turns.
        members: the number of each rank in the turns."""
        self.num_ranks = num_ranks
        self._timeout_s = timeout_s
        self._turns = turns
        self._members = members
        self._changed = threading.Condition()
        self._given: dict[int, Tensor] = {}
        self._num_done = 0
        self._is_broken = False

    def end(self, rank: int) -> InprocPeers:
        """Return the end of one rank."""
        return InprocPeers(self, rank)

    def add(self, rank: int, values: Tensor) -> None:
        """Give one rank's part; wait for the sum, which replaces it."""
        with self._changed:
            self._raise_if_broken()
            assert rank not in self._given, "a rank gives one part to each sum"
            self._given[rank] = values
            if len(self._given) == self.num_ranks:
                self._finish()
                return
            number = self._num_done
            if self._turns is None:
                self._changed.wait_for(lambda: self._is_over(number), self._timeout_s)
        if self._turns is not None:
            self._turns.wait(self._members[rank], lambda: self._is_over(number))
        if self._num_done == number:
            self.leave()
            self._raise_if_broken()

    def _is_over(self, number: int) -> bool:
        """Return whether the sum with this number is there, or will never be."""
        return self._num_done > number or self._is_broken

    def _finish(self) -> None:
        parts = [self._given[rank] for rank in range(self.num_ranks)]
        whole = parts[0].clone()
        for part in parts[1:]:
            whole += part
        for part in parts:
            part.copy_(whole)
        self._given = {}
        self._num_done += 1
        self._changed.notify_all()

    def leave(self) -> None:
        """Break this sum and all later ones: a rank has ended."""
        with self._changed:
            self._is_broken = True
            self._changed.notify_all()

    def _raise_if_broken(self) -> None:
        if self._is_broken:
            raise ReduceBroken(
                f"The learners of {self.num_ranks} groups cannot add up their gradients: one has "
                f"ended, or has not come for {self._timeout_s:g} s."
            )


class InprocPeers:
    """One rank's end."""

    def __init__(self, team: InprocTeam, rank: int) -> None:
        self._team = team
        self.rank = rank
        self.num_ranks = team.num_ranks

    def add(self, values: Tensor) -> None:
        self._team.add(self.rank, values)

    def close(self) -> None:
        """Leave the team: ranks that still wait for this one are told so."""
        self._team.leave()
