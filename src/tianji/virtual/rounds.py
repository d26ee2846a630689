"""Rounds of gradients in given times, without gradients: when each closes, and with whose.

    for done in simulate_rounds(gather, times, num_actors=10, num_steps=200, num_rounds=5): ...

Times, gather rule, buffer and learner are those of real runs, so the counts are theirs too. Time is
whole nanoseconds, and of actors that are due at the same moment the one with the lower index comes
first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tianji.algorithms.interface import Gather
from tianji.balance.given_times import Times, Timing, closing_s
from tianji.buffer.gather.adding import Adding
from tianji.buffer.gather.gate import AHEAD, GatherGate, GatherPlan
from tianji.buffer.gather.rules import GatherRule, build_rule
from tianji.buffer.stores.sums import Sums
from tianji.types import Array
from tianji.virtual.cluster import Machines
from tianji.virtual.costs import FREE
from tianji.virtual.jobs import LEARNER_RANKS, TimedJob, actor_ranks
from tianji.virtual.roles import SimulatedGradients
from tianji.virtual.simulated_group import CountingUpdate, SimulatedGroup


@dataclass(frozen=True, slots=True)
class Round:
    """The round from one version to the next.

    >>> Round(version=0, closed_s=9.0, finish_s=9.0, counts={0: 9, 1: 2, 2: 1}, discarded=2)

    version: the version at which the gradients were made.
    finish_s: when the next version appears: the round is closed, and the sums are collected.
    counts: gradients of each actor that has delivered any.
    discarded: gradients that were in work when the round was closed.
    """

    version: int
    closed_s: float
    finish_s: float
    counts: dict[int, int]
    discarded: int


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


class CountedSums(Adding):
    """The sums of simulated gradients: only their counts (buffer.adding.Adding)."""

    def __init__(self, rule: GatherRule, actors: Sequence[SimulatedGradients]) -> None:
        self._rule = rule
        self._actors = actors

    def add_up(self, version: int, actors: Iterable[int], sum_P: Array) -> list[int]:
        posted = {a: self._actors[a].posted for a in sorted(actors) if self._rule.takes(a)}
        counts = [0] * len(self._actors)
        for actor, sent in posted.items():
            counts[actor] = sent.num_gradients if sent.version == version else 0
        return counts


def simulate_rounds(
    gather: Gather, times: Times, num_actors: int, num_steps: int, num_rounds: int
) -> Iterator[Round]:
    """num_steps: environment steps of one gradient, for times that are given per step."""
    group = SimulatedGroup(
        num_actors, num_actors * (AHEAD + 1), Machines(cores_per_node=num_actors + 1)
    )
    now_ns, rule = group.clock.now_ns, build_rule(gather, num_actors)
    actors = []
    for index in range(num_actors):
        end = group.actor_end(index)
        actors.append(SimulatedGradients(num_steps, Timing(times, index, gather.rule), end))
        job = TimedJob(actors[index], end.rows.gauges, now_ns)
        group.cluster.add_actor(job, ranks=actor_ranks(index))
    closing = closing_s(times, gather.rule)
    plan = GatherPlan(num_parameters=0, closing_s=closing)
    sums = CountedSums(rule, actors)
    gate = GatherGate(plan, rule, sums, group.stream, group.rows, now_ns)
    update = CountingUpdate(1, num_steps)
    group.start(gate, Sums(gate), FREE.learner, update, ranks=LEARNER_RANKS)
    discarded = 0
    for version in range(num_rounds):
        group.run_to(version + 1)
        finish_ns = group.clock.elapsed_ns()
        before, discarded = discarded, group.buffer.discarded
        closed_s = (finish_ns - round(closing * 1e9)) / 1e9
        counts = {actor: count for actor, count in enumerate(gate.taken) if count}
        yield Round(version, closed_s, finish_ns / 1e9, counts, discarded - before)


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
