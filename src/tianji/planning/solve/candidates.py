"""All ways to share a machine, with their predicted rates; the best one first. Pure functions."""

from __future__ import annotations

import itertools
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tianji.config.machine import Machine
from tianji.config.plan import Prediction
from tianji.costs.profile import RATES, Profile, Rehearsal
from tianji.costs.work import actor_threads_measured, actor_work, learner_cost, to_work
from tianji.planning.solve.demand import Demand, RunMemory
from tianji.planning.solve.period import Period, Sides, period
from tianji.wording import counted

# Candidates this near to the best one count as equally fast: the smallest is taken.
TIE_SHARE = 0.03
# A computed rate is trusted less than a rehearsed one by this share, and less by MANY_SHARE if
# there are more than MANY_PER_CORE actors per core: costs are measured with at most one per core.
UNREHEARSED_SHARE = 0.05
MANY_PER_CORE = 4
MANY_SHARE = 0.2
# The side that waits should be this many times faster than needed. Speeds vary, and a side that is
# only just fast enough delays the other one whenever it is slow: 4 actors with a reserve of 1.6
# kept a learner 20 % below its rate with 8, on 16 cores whose speed changed every second.
RESERVE = 2.0
# A plan that reached less of its computed rate than this says little about other plans.
LEAST_REACHED = 0.5


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to share the machine, and its predicted rates."""

    num_actors: int
    envs_per_actor: int
    learner_threads: int
    actor_threads: int
    prediction: Prediction
    period: Period
    memory: RunMemory
    is_rehearsed: bool = False

    @property
    def shares(self) -> tuple[int, int, int]:
        """Return the same numbers as Rehearsal.shares."""
        return self.num_actors, self.learner_threads, self.actor_threads

    @property
    def num_threads(self) -> int:
        return self.num_actors * self.actor_threads + self.learner_threads

    @property
    def reserve(self) -> float:
        """Return how many times faster than needed the side that waits is."""
        terms = self.period.terms
        learner_s = max(terms["training"], terms["communication"])
        first_s, last_s = sorted((terms["sampling"], learner_s))
        return last_s / first_s if first_s else float("inf")

    def in_words(self) -> str:
        actors = counted(self.num_actors, "actor")
        return f"{actors} and {counted(self.learner_threads, 'learner thread')}"

    def size(self, num_cores: int) -> tuple[int, float, int, int]:
        """Return threads without a core, missing reserve, processes and threads."""
        crowd = max(0, self.num_threads - num_cores)
        missing = round(RESERVE - min(RESERVE, self.reserve), 1)
        return crowd, missing, self.num_actors, self.num_threads


def candidates(profile: Profile, machine: Machine, demand: Demand) -> list[Candidate]:
    """Return all candidates that fit in memory: the chosen one, then the others by rate."""
    computed = _computed(profile, len(machine.cores), demand)
    possible = [c for c in computed if c.memory.fits(machine.memory_bytes)]
    if not possible:
        smallest = min((c.memory for c in computed), key=lambda memory: memory.total)
        raise smallest.refusal(machine.memory_bytes)
    ranked = sorted(_corrected(possible, profile.rehearsals), key=_rate, reverse=True)
    chosen = _choose(ranked, len(machine.cores))
    return [chosen, *(candidate for candidate in ranked if candidate is not chosen)]


def one_more_core(profile: Profile, machine: Machine, demand: Demand) -> float:
    """Return the best computed rate with one more core, divided by the best one with these."""
    num_cores, memory_bytes = len(machine.cores), machine.memory_bytes
    these, more = (
        max(_rate(c) for c in _computed(profile, count, demand) if c.memory.fits(memory_bytes))
        for count in (num_cores, num_cores + 1)
    )
    return more / these


def _rate(candidate: Candidate) -> float:
    return candidate.prediction.produced


def _choose(ranked: Sequence[Candidate], num_cores: int) -> Candidate:
    """Return the smallest of the fastest; a computed rate must clearly beat the rehearsed ones."""
    rehearsed = max((_rate(c) for c in ranked if c.is_rehearsed), default=0.0)
    able = [c for c in ranked if c.is_rehearsed or _trusted_rate(c, num_cores) > rehearsed]
    as_good = [c for c in able if _rate(c) >= _rate(able[0]) * (1 - TIE_SHARE)]
    return min(as_good, key=lambda c: (*c.size(num_cores), -_rate(c)))


def _trusted_rate(candidate: Candidate, num_cores: int) -> float:
    is_many = candidate.num_actors > MANY_PER_CORE * num_cores
    return _rate(candidate) * (1 - (MANY_SHARE if is_many else UNREHEARSED_SHARE))


def _computed(profile: Profile, num_cores: int, demand: Demand) -> list[Candidate]:
    learners = sorted({learner.threads for learner in profile.learners})
    threads = [n for n in learners if n <= num_cores] or learners[:1]
    choices = itertools.product(
        _actor_counts(profile, demand),
        threads if demand.learner_threads is None else [demand.learner_threads],
        actor_threads_measured(profile) if demand.actor_threads is None else [demand.actor_threads],
    )
    return [_candidate(profile, num_cores, demand, *shares) for shares in choices]


def _actor_counts(profile: Profile, demand: Demand) -> list[int]:
    """Return the numbers of actors between measured points, or the nearest one."""
    if demand.num_actors is not None:
        return [demand.num_actors]
    measured = [actor.num_envs for actor in profile.actors]
    fewest, most = min(measured), max(measured)
    known = [n for n in demand.shared if fewest <= demand.num_envs // n <= most]
    middle = (fewest + most) / 2
    return known or [min(demand.shared, key=lambda n: abs(demand.num_envs // n - middle))]


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
    # An evaluator has a core of its own if that leaves two.
    has_own_core = demand.has_evaluator and num_cores > 2
    found = period(
        Sides(
            num_actors=num_actors,
            unrolls_per_version=demand.unrolls_per_version(num_actors),
            unroll=actor.unroll,
            version=to_work(learner.version),
            receive_s=learner.receive_s,
            num_cores=num_cores - has_own_core,
            is_serial=demand.max_lag == 0,
        )
    )
    rate = demand.steps_per_version / found.seconds
    prediction = Prediction(
        produced=rate,
        received=rate,
        trained=demand.trained_steps_per_version / found.seconds,
        lag_versions=demand.lag_target,
        bottleneck=found.bottleneck,
    )
    memory = RunMemory(
        num_actors=num_actors,
        actors=num_actors * actor.memory_bytes,
        learner=learner.memory_bytes,
        policy=demand.policy_copies * profile.policy_bytes,
        shared=demand.shared[num_actors],
        evaluator=actor.memory_bytes if demand.has_evaluator else 0,
    )
    shares = num_actors, envs_per_actor, learner_threads, actor_threads
    return Candidate(*shares, prediction, found, memory)


def _corrected(computed: Sequence[Candidate], rehearsals: Sequence[Rehearsal]) -> list[Candidate]:
    """Replace computed rates by rehearsed ones, and scale the others by what rehearsals reached.

    A failed rehearsal says nothing about the others, and nothing at all if every one failed.
    """
    by_shares: dict[tuple[int, int, int], list[Rehearsal]] = defaultdict(list)
    for rehearsal in rehearsals:
        by_shares[rehearsal.shares].append(rehearsal)
    means = {shares: _mean(alike) for shares, alike in by_shares.items()}
    tried = [(c, means[c.shares]) for c in computed if c.shares in means]
    reached = [
        (c.learner_threads, mean.produced / (mean.computed or _rate(c)))
        for c, mean in tried
        if mean.produced
    ]
    if len(tried) == len(computed) and not reached:
        return list(computed)
    return [
        _as_rehearsed(c, means[c.shares]) if c.shares in means else _scaled(c, _reached(reached, c))
        for c in computed
    ]


def _mean(alike: Sequence[Rehearsal]) -> Rehearsal:
    names = (*RATES, "lag_versions")
    means = {name: statistics.fmean(getattr(tried, name) for tried in alike) for name in names}
    return alike[0].model_copy(update=means)


def _reached(reached: Sequence[tuple[int, float]], candidate: Candidate) -> float:
    """Return the share of the computed rate to expect.

    Rehearsals with as many learner threads count first: threads that wait for each other are what
    the computation models worst.
    """
    alike = [share for threads, share in reached if threads == candidate.learner_threads]
    if alike:
        return statistics.median(alike)
    every = [share for _, share in reached]
    return max(LEAST_REACHED, statistics.median(every)) if every else 1.0


def _as_rehearsed(candidate: Candidate, mean: Rehearsal) -> Candidate:
    """Use the rehearsed rates. If costs have changed since, scale them as the computed rate."""
    change = _rate(candidate) / (mean.computed or _rate(candidate))
    found = mean.model_dump(include={*RATES, "lag_versions"})
    rehearsed = candidate.prediction.model_copy(update=found)
    return _scaled(replace(candidate, prediction=rehearsed, is_rehearsed=True), change)


def _scaled(candidate: Candidate, factor: float) -> Candidate:
    before = candidate.prediction
    rates = {name: factor * getattr(before, name) for name in RATES}
    return replace(candidate, prediction=before.model_copy(update=rates))
