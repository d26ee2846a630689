"""Gather rules: they say when a version has enough gradients. Pure objects, O(1) per arrival.

rule = build_rule(Gather("harmonic", num_gradients=20, first_num_gradients=20), num_actors=10)
rule.begin(is_first=True)            # a version begins: nothing has arrived
if rule.arrived(actor): ...          # one gradient of this actor; True: the round is closed
factor, weight = rule.weigh(count)   # for an actor's sum of `count` gradients; the aggregate is
                                     # the sum of factor * sum_P divided by the sum of weights
"""

from __future__ import annotations

from typing import Protocol

from tianji.algorithms.interface import Gather

_ONE = 1 << 96
"""Unit of the harmonic rule's sums: it adds 1/count as multiples of 2^-96. Rounding errors cannot
accumulate, and a sum that equals its bound compares as equal."""


class GatherRule(Protocol):
    """Counts the gradients of a version and says when there are enough."""

    one_each: bool
    """An actor makes one gradient per version, not as many as it can."""
    takes_old: bool
    """Gradients at older versions count too."""
    needs_everybody: bool
    """The round stays open until every actor that takes part has delivered."""
    counts: list[int]
    """Gradients of each actor that have arrived at this version."""
    is_closed: bool

    def begin(self, is_first: bool) -> None:
        """Begin a version. The first one may need another number of gradients."""
        ...

    def arrived(self, actor: int) -> bool:
        """Count one gradient; return whether the round is closed. An actor left out joins again."""
        ...

    def waiting_for(self) -> list[int]:
        """Return the actors that must deliver before the round can close, supposing that those
        ahead of them stop; none where any actor's gradients will do."""
        return []

    def forget(self, actor: int) -> None:
        """Count none of this actor's gradients at this version: they are lost. A round that is
        closed is open again if it needs them."""
        ...

    def leave(self, actor: int) -> bool:
        """Continue without this actor; return whether that closes the round."""
        return False

    def join(self, actor: int) -> None:
        """Let the actor take part again."""
        return

    def takes(self, actor: int) -> bool:
        """Return whether this actor's sum belongs to the aggregate of the closed round."""
        return True

    def weigh(self, count: int) -> tuple[float, float]:
        """Return the factor for a sum of `count` > 0 gradients, and its weight in the aggregate."""
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


class FirstCount(GatherRule):
    """Rennala: the first M gradients from any actors; the aggregate is their mean."""

    one_each = False
    takes_old = False
    needs_everybody = False

    def __init__(self, num_actors: int, num_gradients: int, first_num_gradients: int) -> None:
        self._later, self._first = num_gradients, first_num_gradients
        self.counts = [0] * num_actors
        self._arrived: list[int] = []
        self.begin(is_first=True)

    def begin(self, is_first: bool) -> None:
        for actor in self._arrived:  # not for all actors: AFedPG begins a round after every arrival
            self.counts[actor] = 0
        self._arrived.clear()
        self._num_gradients = self._first if is_first else self._later
        self.is_closed = False

    def arrived(self, actor: int) -> bool:
        self.counts[actor] += 1
        self._arrived.append(actor)
        self.is_closed = len(self._arrived) >= self._num_gradients
        return self.is_closed

    def forget(self, actor: int) -> None:
        self.counts[actor] = 0
        self._arrived = [other for other in self._arrived if other != actor]
        self.is_closed = len(self._arrived) >= self._num_gradients

    def weigh(self, count: int) -> tuple[float, float]:
        return 1.0, float(count)


class EveryArrival(FirstCount):
    """AFedPG: each gradient makes a version of its own."""

    one_each = True
    takes_old = True
    needs_everybody = False

    def __init__(self, num_actors: int) -> None:
        super().__init__(num_actors, 1, 1)

    def takes(self, actor: int) -> bool:
        return self.counts[actor] > 0


class HarmonicCount(GatherRule):
    """Malenia: a round ends when the sum of 1 / count_i over the n present actors is <= n^2 / M.

    Every actor has to deliver, and the mean of their means has at most the variance of M gradients.
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

    def forget(self, actor: int) -> None:
        count, self.counts[actor] = self.counts[actor], 0
        if count and self._present[actor]:
            self._num_silent += 1
            self._sum -= _one_over(count)
            self.is_closed = False

    def waiting_for(self) -> list[int]:
        if self.is_closed:
            return []
        ahead, there = 0, [actor for actor, present in enumerate(self._present) if present]
        slowest_last = sorted(there, key=lambda actor: -self.counts[actor])
        for place, actor in enumerate(slowest_last):
            ahead += _one_over(self.counts[actor])
            above = ahead + place + 1  # than the true sum: each part was rounded down
            if self.counts[actor] == 0 or not self._is_enough(above):
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

    It is the harmonic rule with M = 1, which closes as soon as every actor has delivered.
    """

    one_each = True

    def __init__(self, num_actors: int) -> None:
        super().__init__(num_actors, 1, 1)


def _one_over(count: int) -> int:
    return _ONE // count if count else 0
