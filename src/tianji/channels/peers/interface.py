"""Peers: the learners of all groups, as each of them sees the others.

    peers.add(gradient_P)                     # now the sum of those of all ranks, in place
    total(peers, [num_rows, ...])             # the sums of a few numbers
    gathered(peers, [num_rows, ...])          # the numbers of every rank

A reduction waits until every rank has come to it, so that all ranks must make the same calls in the
same order, whatever their data. All of them get the same sums to the last bit. A rank that dies, or
does not come in time, breaks the reduction for all others (ReduceBroken).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:  # torch takes a second to load, and supervisors do without it
    from torch import Tensor


class Peers(Protocol):
    """One rank's end."""

    @property
    def rank(self) -> int: ...

    @property
    def num_ranks(self) -> int: ...

    def add(self, values: Tensor) -> None:
        """Replace a contiguous tensor of floats by the sum of those of all ranks, in place."""


@runtime_checkable
class Joins(Protocol):
    """An update that several learners can make together (Algorithm.adds_gradients)."""

    def join(self, peers: Peers) -> None:
        """Make the updates of one learner with the batches of all ranks from now on.

        Whatever depends on the whole batch is then computed over all ranks, and every rank makes
        the same number of updates. Each minibatch's gradient is this rank's part of a sum, by which
        the learner replaces it before it calls step().
        """


WORTH_A_MEETING_BYTES = 256 << 10
"""Bytes that a rank reads in about the time of a meeting in shared memory."""


def adds_slices(nbytes: int, num_ranks: int) -> bool:
    """Return whether ranks that add up this many bytes in shared memory do better to add up a slice
    each: a rank then reads two times as many bytes instead of num_ranks times, and they meet once
    more."""
    return (num_ranks - 2) * nbytes > WORTH_A_MEETING_BYTES


class Alone:
    """The only rank: sums are what they were."""

    rank = 0
    num_ranks = 1

    def add(self, values: Tensor) -> None:
        """Do nothing."""


ALONE = Alone()


def total(peers: Peers, numbers: Sequence[float]) -> list[float]:
    """Return the sum over all ranks of each of a few numbers."""
    import torch

    values = torch.tensor(numbers, dtype=torch.float64)
    peers.add(values)
    return values.tolist()


def gathered(peers: Peers, numbers: Sequence[float]) -> list[list[float]]:
    """Return the numbers of every rank, in the order of the ranks."""
    import torch

    values = torch.zeros(peers.num_ranks, len(numbers), dtype=torch.float64)
    values[peers.rank] = torch.tensor(numbers, dtype=torch.float64)
    peers.add(values)
    return values.tolist()
