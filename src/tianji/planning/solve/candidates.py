"""Every way to share a machine, with what it promises; the best first. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tianji.config.machine import Machine
from tianji.config.plan import Prediction
from tianji.costs.profile import Profile, Rehearsal
from tianji.costs.work import actor_threads_measured, actor_work, learner_cost, to_work
from tianji.planning.solve.demand import Demand
from tianji.planning.solve.memory_fit import TOTAL, ProcessBytes, fits, memory_parts, refuse
from tianji.planning.solve.period import Period, Sides, period

TIE_SHARE = 0.03
"""Candidates this near to the best are as good: the smaller one is taken."""
UNREHEARSED_SHARE = 0.05
"""A candidate that was only computed must promise this much more than one that was tried."""
MANY_PER_CORE = 4
MANY_SHARE = 0.2
"""So much more, a quarter of what was tried, where it has more than MANY_PER_CORE actors for each
core: costs are measured with one actor a core at most, and nobody has seen that many work."""
RESERVE = 2.0
"""How many times faster than needed the side that waits should be. Speeds vary, and a side that is
only just fast enough holds up the other one whenever it is slow: 4 actors with a reserve of 1.6
kept a learner 20 % behind what it did with 8, on 16 cores whose speed changed by the second."""
LEAST_REACHED = 0.5
"""A plan that fell further behind its computation than this says little about the others."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to share the machine, and what it promises."""

    num_actors: int
    envs_per_actor: int
    learner_threads: int
    actor_threads: int
    prediction: Prediction
    period: Period
    memory_bytes: Mapping[str, int]
    is_rehearsed: bool = False

    @property
    def shares(self) -> tuple[int, int, int]:
        """As those of a Rehearsal."""
        return self.num_actors, self.learner_threads, self.actor_threads

    @property
    def num_threads(self) -> int:
        return self.num_actors * self.actor_threads + self.learner_threads

    @property
    def reserve(self) -> float:
        """How many times faster than needed the side that waits is."""
        terms = self.period.terms
        learner_s = max(terms["training"], terms["communication"])
        first_s, last_s = sorted((terms["sampling"], learner_s))
        return last_s / first_s if first_s else float("inf")

    def size(self, num_cores: int) -> tuple[int, float, int, int]:
        """Threads without a core, want of reserve, processes, threads: less of each is better."""
        crowd = max(0, self.num_threads - num_cores)
        want = round(RESERVE - min(RESERVE, self.reserve), 1)
        return crowd, want, self.num_actors, self.num_threads


def candidates(profile: Profile, machine: Machine, demand: Demand) -> list[Candidate]:
    """Every way that fits: the chosen one first, then by what they promise."""
    computed = _computed(profile, len(machine.cores), demand)
    possible = [c for c in computed if fits(c.memory_bytes, machine.memory_bytes)]
    if not possible:
        least = min(computed, key=lambda c: c.memory_bytes[TOTAL])
        raise refuse(least.memory_bytes, least.num_actors, machine.memory_bytes)
    ranked = sorted(_rehearsed(possible, profile.rehearsals), key=_rate, reverse=True)
    chosen = _choose(ranked, len(machine.cores))
    return [chosen, *(candidate for candidate in ranked if candidate is not chosen)]


def one_more_core(profile: Profile, machine: Machine, demand: Demand) -> float:
    """The best rate with one more core over the best one with these, both as computed."""
    num_cores = len(machine.cores)
    these, more = (
        max(
            _rate(c)
            for c in _computed(profile, count, demand)
            if fits(c.memory_bytes, machine.memory_bytes)
        )
        for count in (num_cores, num_cores + 1)
    )
    return more / these


def _rate(candidate: Candidate) -> float:
    return candidate.prediction.produced


def _choose(ranked: Sequence[Candidate], num_cores: int) -> Candidate:
    """The smallest of those that are as good as the best; what was tried comes before what was
    only computed."""
    tried = max((_rate(c) for c in ranked if c.is_rehearsed), default=0.0)
    able = [c for c in ranked if c.is_rehearsed or _sure_rate(c, num_cores) > tried]
    as_good = [c for c in able if _rate(c) >= _rate(able[0]) * (1 - TIE_SHARE)]
    return min(as_good, key=lambda c: (*c.size(num_cores), -_rate(c)))


def _sure_rate(candidate: Candidate, num_cores: int) -> float:
    """What was only computed, as far as it is trusted."""
    is_many = candidate.num_actors > MANY_PER_CORE * num_cores
    return _rate(candidate) * (1 - (MANY_SHARE if is_many else UNREHEARSED_SHARE))


def _computed(profile: Profile, num_cores: int, demand: Demand) -> list[Candidate]:
    """All choices that are open, with what the model makes of them."""
    return [
        _candidate(profile, num_cores, demand, num_actors, learner_threads, actor_threads)
        for num_actors in _actor_counts(profile, demand)
        for learner_threads in _learner_choices(profile, num_cores, demand)
        for actor_threads in _actor_thread_choices(profile, demand)
    ]


def _actor_counts(profile: Profile, demand: Demand) -> list[int]:
    """Those whose costs are known; where none is, the nearest one."""
    if demand.num_actors is not None:
        return [demand.num_actors]
    fewest = min(actor.num_envs for actor in profile.actors)
    most = max(actor.num_envs for actor in profile.actors)
    known = [n for n in demand.shared if fewest <= demand.num_envs // n <= most]
    return known or [
        min(demand.shared, key=lambda n: abs(demand.num_envs // n - (fewest + most) / 2))
    ]


def _learner_choices(profile: Profile, num_cores: int, demand: Demand) -> list[int]:
    if demand.learner_threads is not None:
        return [demand.learner_threads]
    measured = sorted({learner.threads for learner in profile.learners})
    return [threads for threads in measured if threads <= num_cores] or measured[:1]


def _actor_thread_choices(profile: Profile, demand: Demand) -> tuple[int, ...]:
    if demand.actor_threads is not None:
        return (demand.actor_threads,)
    return actor_threads_measured(profile)


def _candidate(
    profile: Profile,
    num_cores: int,
    demand: Demand,
    num_actors: int,
    learner_threads: int,
    actor_threads: int,
) -> Candidate:
    envs_per_actor = demand.num_envs // num_actors
    actor = actor_work(profile, envs_per_actor, actor_threads)
    learner = learner_cost(profile, learner_threads)
    found = period(
        Sides(
            num_actors=num_actors,
            unrolls_per_version=demand.unrolls_per_version(num_actors),
            unroll=actor.unroll,
            version=to_work(learner.version),
            receive_s=learner.receive_s,
            num_cores=cores_for_training(num_cores, demand),
            is_serial=demand.max_lag == 0,
        )
    )
    rate = demand.steps_per_version / found.seconds
    return Candidate(
        num_actors=num_actors,
        envs_per_actor=envs_per_actor,
        learner_threads=learner_threads,
        actor_threads=actor_threads,
        prediction=Prediction(
            produced=rate,
            received=rate,
            trained=demand.trained_steps_per_version / found.seconds,
            lag_versions=demand.lag_target,
            bottleneck=found.bottleneck,
        ),
        period=found,
        memory_bytes=memory_parts(
            demand.shared[num_actors],
            num_actors,
            ProcessBytes(
                actor=actor.memory_bytes,
                learner=learner.memory_bytes,
                policy=demand.policy_copies * profile.policy_bytes,
                evaluator=actor.memory_bytes if demand.has_evaluator else 0,
            ),
        ),
    )


def cores_for_training(num_cores: int, demand: Demand) -> int:
    """An evaluator has a core to itself where that leaves two."""
    return num_cores - 1 if demand.has_evaluator and num_cores > 2 else num_cores


def _rehearsed(computed: Sequence[Candidate], rehearsals: Sequence[Rehearsal]) -> list[Candidate]:
    """What was tried is promised as it was; the rest as computed, times what the tried ones reached
    of what was computed for them. A trial that failed says nothing about the rest, and nothing at
    all where every one has failed."""
    by_shares = _averaged(rehearsals)
    tried = [by_shares.get(c.shares) for c in computed]
    if all(rehearsal is not None and not rehearsal.produced for rehearsal in tried):
        return list(computed)
    reached = [
        (c.learner_threads, rehearsal.produced / (rehearsal.computed or _rate(c)))
        for c, rehearsal in zip(computed, tried, strict=True)
        if rehearsal is not None and rehearsal.produced
    ]
    return [
        _scaled(c, _reached(reached, c)) if rehearsal is None else _as_tried(c, rehearsal)
        for c, rehearsal in zip(computed, tried, strict=True)
    ]


def _averaged(rehearsals: Sequence[Rehearsal]) -> dict[tuple[int, int, int], Rehearsal]:
    """By their shares; what was tried more than once counts as its mean."""
    found: dict[tuple[int, int, int], list[Rehearsal]] = {}
    for tried in rehearsals:
        found.setdefault(tried.shares, []).append(tried)
    return {shares: _mean(alike) for shares, alike in found.items()}


def _mean(alike: Sequence[Rehearsal]) -> Rehearsal:
    names = ("produced", "received", "trained", "lag_versions")
    means = {name: statistics.fmean(getattr(tried, name) for tried in alike) for name in names}
    return alike[0].model_copy(update=means)


def _reached(reached: Sequence[tuple[int, float]], candidate: Candidate) -> float:
    """By those with as many learner threads, where there are any: threads that wait for each other
    are what computation knows least about."""
    alike = [share for threads, share in reached if threads == candidate.learner_threads]
    if alike:
        return statistics.median(alike)
    every = [share for _, share in reached]
    return max(LEAST_REACHED, statistics.median(every)) if every else 1.0


def _as_tried(candidate: Candidate, rehearsal: Rehearsal) -> Candidate:
    """Where costs have changed since it was tried, it changes as its computed rate did."""
    change = _rate(candidate) / (rehearsal.computed or _rate(candidate))
    prediction = Prediction(
        produced=rehearsal.produced * change,
        received=rehearsal.received * change,
        trained=rehearsal.trained * change,
        lag_versions=rehearsal.lag_versions,
        bottleneck=candidate.prediction.bottleneck,
    )
    return replace(candidate, prediction=prediction, is_rehearsed=True)


def _scaled(candidate: Candidate, factor: float) -> Candidate:
    before = candidate.prediction
    rates = {
        "produced": before.produced * factor,
        "received": before.received * factor,
        "trained": before.trained * factor,
    }
    return replace(candidate, prediction=before.model_copy(update=rates))
