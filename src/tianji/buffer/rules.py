"""Gather rules: when the gradients of a version are enough. Pure objects, O(1) per arrival.

rule = build_rule(Gather("harmonic", num_gradients=20, first_num_gradients=20), num_actors=10)
rule.begin(is_first=True)            # a version begins: nothing has arrived
if rule.arrived(actor): ...          # one gradient of this actor; True: the round is closed
factor, weight = rule.weigh(count)   # of an actor's sum of `count` gradients: the aggregate is
                                     # the sum of factor * sum_P over the sum of weights
"""

from __future__ import annotations

from typing import Protocol

from tianji.algorithms.interface import Gather

_ONE = 1 << 96
"""The harmonic rule adds 1/count as integers of 2^-96: no rounding error can gather over many
arrivals, and a sum that meets its bound exactly is seen to meet it."""


class GatherRule(Protocol):
    """What the buffer asks of a rule."""

    one_each: bool
    """An actor makes one gradient per version, not as many as it can."""
    takes_old: bool
    """Gradients at older versions count too."""
    needs_everybody: bool
    """The round is not closed before every actor that is counted in has delivered."""
    counts: list[int]
    """Gradients of each actor that have arrived at this version."""
    is_closed: bool

    def begin(self, is_first: bool) -> None:
        """A version begins; the first one may need another number of gradients."""
        ...

    def arrived(self, actor: int) -> bool:
        """One gradient at this version; True: the round is closed. Who was left is back."""
        ...

    def waiting_for(self) -> list[int]:
        """The actors that have to deliver before the round can close, if those who are ahead of
        them were to stop; none where it does not matter from whom gradients come."""
        ...

    def leave(self, actor: int) -> bool:
        """Go on without this actor, in later versions too; True: that closes the round."""
        ...

    def join(self, actor: int) -> None:
        """The actor counts again."""
        ...

    def takes(self, actor: int) -> bool:
        """Whether this actor's sum belongs to the aggregate of the closed round."""
        ...

    def weigh(self, count: int) -> tuple[float, float]:
        """The factor for a sum of `count` > 0 gradients, and its weight in the aggregate."""
        ...


def build_rule(gather: Gather, num_actors: int) -> GatherRule:
    first, later = gather.first_num_gradients, gather.num_gradients
    if gather.rule == "first":
        return FirstCount(num_actors, later, first)
    if gather.rule == "harmonic":
        return HarmonicCount(num_actors, later, first)
    if gather.rule == "barrier":
        return Barrier(num_actors)
    return EveryArrival(num_actors)


class FirstCount:
    """Rennala: the first M gradients, from whomever they come; the aggregate is their mean."""

    one_each = False
    takes_old = False
    needs_everybody = False

    def __init__(self, num_actors: int, num_gradients: int, first_num_gradients: int) -> None:
        self._later, self._first = num_gradients, first_num_gradients
        self.counts = [0] * num_actors
        self._arrived: list[int] = []
        self.begin(is_first=True)

    def begin(self, is_first: bool) -> None:
        for actor in self._arrived:  # not all of them: AFedPG begins anew after every arrival
            self.counts[actor] = 0
        self._arrived.clear()
        self._num_gradients = self._first if is_first else self._later
        self.is_closed = False

    def arrived(self, actor: int) -> bool:
        self.counts[actor] += 1
        self._arrived.append(actor)
        self.is_closed = len(self._arrived) >= self._num_gradients
        return self.is_closed

    def waiting_for(self) -> list[int]:
        return []

    def leave(self, actor: int) -> bool:
        return False

    def join(self, actor: int) -> None:
        pass

    def takes(self, actor: int) -> bool:
        return True

    def weigh(self, count: int) -> tuple[float, float]:
        return 1.0, float(count)


class EveryArrival(FirstCount):
    """AFedPG: each gradient makes a version, of that gradient alone."""

    one_each = True
    takes_old = True
    needs_everybody = False

    def __init__(self, num_actors: int) -> None:
        super().__init__(num_actors, 1, 1)

    def takes(self, actor: int) -> bool:
        return self.counts[actor] > 0


class HarmonicCount:
    """Malenia: until the sum of 1 / count_i is at most n^2 / M, over the n actors that are there.

    Everybody has to deliver, and the mean of their means has at most the variance of M gradients.
    """

    one_each = False
    takes_old = False
    needs_everybody = True

    def __init__(self, num_actors: int, num_gradients: int, first_num_gradients: int) -> None:
        self._later, self._first = num_gradients, first_num_gradients
        self._present = [True] * num_actors
        self.counts = [0] * num_actors
        self.begin(is_first=True)

    def begin(self, is_first: bool) -> None:
        self.counts = [0] * len(self.counts)
        self.is_closed = False
        self._num_gradients = self._first if is_first else self._later
        self._num_present = self._num_silent = sum(self._present)
        self._sum = 0

    def arrived(self, actor: int) -> bool:
        self.join(actor)
        count = self.counts[actor]
        self.counts[actor] = count + 1
        if count == 0:
            self._num_silent -= 1
        self._sum += _one_over(count + 1) - _one_over(count)
        return self._close_if_enough()

    def waiting_for(self) -> list[int]:
        if self.is_closed:
            return []
        ahead, there = 0, [actor for actor, present in enumerate(self._present) if present]
        slowest_last = sorted(there, key=lambda actor: -self.counts[actor])
        for place, actor in enumerate(slowest_last):
            ahead += _one_over(self.counts[actor])
            if self.counts[actor] == 0 or not self._is_enough(ahead + 1):
                return sorted(slowest_last[place:])
        return []

    def leave(self, actor: int) -> bool:
        if not self._present[actor]:
            return False
        self._count_in(actor, -1)
        return not self.is_closed and self._close_if_enough()

    def join(self, actor: int) -> None:
        if not self._present[actor]:
            self._count_in(actor, 1)

    def takes(self, actor: int) -> bool:
        return self._present[actor]

    def weigh(self, count: int) -> tuple[float, float]:
        return 1.0 / count, 1.0

    def _count_in(self, actor: int, sign: int) -> None:
        self._present[actor] = sign > 0
        self._num_present += sign
        self._num_silent += sign * (self.counts[actor] == 0)
        self._sum += sign * _one_over(self.counts[actor])

    def _close_if_enough(self) -> bool:
        self.is_closed = self.is_closed or (
            self._num_silent == 0 and self._num_present > 0 and self._is_enough(self._sum)
        )
        return self.is_closed

    def _is_enough(self, sum_of_parts: int) -> bool:
        return sum_of_parts * self._num_gradients <= self._num_present**2 * _ONE


class Barrier(HarmonicCount):
    """Synchronous: one gradient from every actor; the aggregate is their mean.

    That is the harmonic rule with M = 1, which is enough as soon as everybody has delivered.
    """

    one_each = True

    def __init__(self, num_actors: int) -> None:
        super().__init__(num_actors, 1, 1)


def _one_over(count: int) -> int:
    return _ONE // count if count else 0
