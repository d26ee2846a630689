"""Rounds of gradients in given times, without gradients: when each is closed, and by whom.

The gather rules and the times are those of real runs, so the counts are theirs too; what is not
here is anything that computes. Time is whole nanoseconds, and ties go by the index of the actor.

    for done in simulate_rounds(gather, times, num_actors=10, num_steps=200, num_rounds=5): ...
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace

from tianji.algorithms.interface import Gather
from tianji.balance.given_times import Times
from tianji.balance.gradient_timing import Timing, closing_s
from tianji.buffer.rules import GatherRule, build_rule


@dataclass(frozen=True, slots=True)
class Round:
    """From one version to the next.

    >>> Round(version=0, closed_s=9.0, finish_s=9.0, counts={0: 9, 1: 2, 2: 1}, discarded=2)
    """

    version: int
    """At which the gradients were wanted."""
    closed_s: float
    finish_s: float
    """When the next version is there: closed, and the sums collected."""
    counts: dict[int, int]
    """Gradients of each actor that has delivered any."""
    discarded: int
    """Gradients that were in work, with some progress, when the round was closed."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """All rounds of a run together."""

    rounds: int
    finish_s: float
    counts: tuple[int, ...]
    gradients: int
    discarded: int
    rounds_per_s: float
    gradients_per_s: float


def simulate_rounds(
    gather: Gather, times: Times, num_actors: int, num_steps: int, num_rounds: int
) -> Iterator[Round]:
    """num_steps: of one gradient, for times that are given per step."""
    race = _Race(gather, times, num_actors, num_steps)
    for version in range(num_rounds):
        yield race.run(version)


def total(rounds: Iterable[Round], num_actors: int) -> Gathered:
    num_rounds, finish_s, discarded, counts = 0, 0.0, 0, [0] * num_actors
    for done in rounds:
        num_rounds, finish_s, discarded = num_rounds + 1, done.finish_s, discarded + done.discarded
        for actor, count in done.counts.items():
            counts[actor] += count
    return Gathered(
        rounds=num_rounds,
        finish_s=finish_s,
        counts=tuple(counts),
        gradients=sum(counts),
        discarded=discarded,
        rounds_per_s=num_rounds / finish_s,
        gradients_per_s=sum(counts) / finish_s,
    )


class _Race:
    """The actors, the gradient that each is at, and the rule that ends a round."""

    def __init__(self, gather: Gather, times: Times, num_actors: int, num_steps: int) -> None:
        self._rule: GatherRule = build_rule(gather, num_actors)
        self._timings = [Timing(times, actor, gather.rule) for actor in range(num_actors)]
        self._num_steps = num_steps
        self._closing_ns = round(closing_s(times, gather.rule) * 1e9)
        self._started_ns = [0] * num_actors
        self._now_ns = 0
        self._due: list[tuple[int, int]] = []
        """A heap of (when it is done, actor), of all gradients in work."""

    def run(self, version: int) -> Round:
        self._rule.begin(is_first=version == 0)
        if self._rule.takes_old:
            return self._next_arrival(version)
        self._begin_all(version)
        while True:
            self._now_ns, actor = self._due[0]
            is_closed = self._rule.arrived(actor)
            if is_closed or self._rule.one_each:
                heappop(self._due)
            else:
                heapreplace(self._due, self._begin(actor, version))
            if is_closed:
                counts = enumerate(self._rule.counts)
                return self._close(version, {of: count for of, count in counts if count})

    def _next_arrival(self, version: int) -> Round:
        """Nobody is interrupted: whoever is next makes a version, and goes on from it."""
        if version == 0:
            self._begin_all(version)
        self._now_ns, actor = self._due[0]
        self._rule.arrived(actor)
        heapreplace(self._due, self._begin(actor, version + 1))
        now_s = self._now_ns / 1e9
        return Round(version, now_s, now_s, {actor: 1}, discarded=0)

    def _begin_all(self, version: int) -> None:
        self._due = [self._begin(actor, version) for actor in range(len(self._timings))]
        heapify(self._due)

    def _begin(self, actor: int, version: int) -> tuple[int, int]:
        timing = self._timings[actor]
        self._started_ns[actor] = self._now_ns
        timing.begin(version, self._now_ns, 0)
        return timing.due_ns(self._num_steps), actor

    def _close(self, version: int, counts: dict[int, int]) -> Round:
        closed_ns = self._now_ns
        discarded = sum(self._started_ns[actor] < closed_ns for _, actor in self._due)
        self._now_ns += self._closing_ns
        return Round(version, closed_ns / 1e9, self._now_ns / 1e9, counts, discarded)
