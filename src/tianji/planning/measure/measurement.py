"""The costs of a run's parts: every point alone first, then all at once.

Alone, one process works and the others sleep. Loaded, the learner and as many actors as there are
cores left for work in the same span. A point has no more actors than the run would have. A learner
that leaves no core for an actor has no figure under load: it counts as it is alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tianji.config.machine import Machine
from tianji.config.plan import RunPlan
from tianji.config.schema import Strict
from tianji.envs.build import Probe
from tianji.errors import UsageError
from tianji.planning.measure.choices import (
    actor_counts,
    does_help,
    is_inference_heavy,
    is_waiting,
    loads,
    sampler_count,
    thread_counts,
)
from tianji.planning.measure.crew import Crew, Member, span_of
from tianji.planning.measure.readings import SAMPLER, TRAINER, Built, Command, Sampled, Trained
from tianji.planning.resolve.resolve import resolve
from tianji.wording import counted

ALONE_S = 0.6
LOADED_S = 0.6
WARM_S = 0.1
FILL_BYTES = 256 << 20
FILL_UNROLLS = 20_000
"""How much of a replay store is filled: enough that sampling leaves the caches."""
MOST_HEAVY = 3
MEMORY_SHARE = 0.5
"""Of the free memory, what the environments of a profile may take."""


class _Nothing(Strict):
    """The answer to a command that has none."""


@dataclass
class Point:
    """One number of actors."""

    plan: RunPlan
    built: Built
    alone: Sampled
    loaded: list[Sampled] = field(default_factory=list)
    """One reading of every actor that took part."""


@dataclass
class Learned:
    """One number of learner threads."""

    alone: Trained
    loaded: Trained | None = None


class Costs:
    """Measures point by point until the deadline; the first point of each kind always."""

    def __init__(
        self,
        crew: Crew,
        machine: Machine,
        probe: Probe,
        deadline_s: float,
        tell: Callable[[str], None],
    ) -> None:
        self._crew = crew
        self._config = crew.spec.config
        self._machine = machine
        self._num_cores = len(machine.cores)
        self._probe = probe
        self._deadline_s = deadline_s
        self._tell = tell
        self.points: list[Point] = []
        self.learners: dict[int, Learned] = {}
        """By number of threads."""
        self.policy_bytes = 0
        self.start_up_s = 0.0
        """Until a process had loaded what it needs, and built its first actor."""

    def measure(self) -> None:
        began_s = time.monotonic()
        self._start()
        plan, *others = self._plans(actor_counts(self._config, self._machine))
        built = self._build(plan)
        self.start_up_s = time.monotonic() - began_s
        self._samplers[0].ask(Command(do="record"), _Nothing)
        self._measure_learner()
        self._measure_point(plan, built, loads(self._helpful(), 0, len(others), self._num_cores))
        alone = self.points[0].alone
        if is_waiting(alone.unroll_s, alone.cpu_s):
            more = self._plans(actor_counts(self._config, self._machine, are_waiting=True))
            others = [other for other in more if other.num_actors != plan.num_actors]
        for index, other in enumerate(others):
            if not self._is_late() and self._is_affordable(other):
                company = loads(self._helpful(), index + 1, len(others), self._num_cores)
                self._measure_point(other, self._build(other), company)
        self._measure_more_threads()

    def _measure_point(self, plan: RunPlan, built: Built, company: list[int]) -> None:
        """An actor alone, then beside learners with so many threads each."""
        point = self._measure_alone(self._samplers[0], plan, built)
        for threads in company:
            self._measure_loaded(point, threads)

    def _start(self) -> None:
        """All at once: most of the time they load libraries."""
        config, threads = self._config, self._crew.spec.plan.actor_threads
        count = sampler_count(config, self._machine)
        self._tell(f"Starting {count + 1} processes for the measurement.")
        self._samplers = [self._crew.start(f"{SAMPLER}-{i}", threads) for i in range(count)]
        self._trainer = self._crew.start(TRAINER, max(thread_counts(config, self._machine)))

    def _is_late(self) -> bool:
        return time.monotonic() > self._deadline_s

    def _plans(self, counts: Sequence[int]) -> list[RunPlan]:
        """The plans with so many actors each, without those that cannot run on this machine."""
        found: list[RunPlan] = []
        error: UsageError | None = None
        for num_actors in counts:
            fixed = {"num_actors": num_actors, "learner_threads": 1}
            config = self._config.model_copy(update=fixed)
            try:
                found.append(resolve(config, self._machine, self._probe))
            except UsageError as refused:
                error = refused
        if error is not None and not found:
            raise error
        return found

    def _is_affordable(self, plan: RunPlan) -> bool:
        """Whether building so many environments takes too much memory or time."""
        seen = max(self.points, key=lambda point: point.plan.envs_per_actor)
        growth = plan.envs_per_actor / seen.plan.envs_per_actor
        free_bytes = MEMORY_SHARE * self._machine.memory_bytes
        left_s = self._deadline_s - time.monotonic()
        return (
            len(self._members(plan)) * growth * seen.built.grown_bytes < free_bytes
            and growth * seen.built.build_s < left_s
        )

    def _members(self, plan: RunPlan) -> list[Member]:
        """Samplers that take part: no more than the run would have actors."""
        return self._samplers[: plan.num_actors]

    def _build(self, plan: RunPlan) -> Built:
        members = self._members(plan)
        for member in members:
            member.tell(Command(do="build", plan=plan.model_dump(mode="json")))
        built, *_ = [member.hear(Built) for member in members]
        return built

    def _measure_alone(self, sampler: Member, plan: RunPlan, built: Built) -> Point:
        work = Command(do="work", span=span_of(ALONE_S, WARM_S, is_alone=True))
        alone = sampler.ask(work, Sampled)
        self._tell(
            f"An actor with {counted(plan.envs_per_actor, 'environment')}: "
            f"{plan.steps_per_unroll / alone.unroll_s:,.0f} steps/s, "
            f"{alone.environment_share:.0%} of it in the environment."
        )
        self.points.append(Point(plan, built, alone))
        return self.points[-1]

    def _measure_learner(self) -> None:
        plan = bounded(resolve(self._config, self._machine, self._probe))
        build = Command(do="build", plan=plan.model_dump(mode="json"))
        built = self._trainer.ask(build, Built)
        self.policy_bytes = built.policy_bytes
        before: Trained | None = None
        for threads in thread_counts(self._config, self._machine):
            span = span_of(ALONE_S, WARM_S, is_alone=True)
            work = Command(do="work", span=span, threads=threads)
            alone = self._trainer.ask(work, Trained)
            self.learners[threads] = Learned(alone)
            self._tell(
                f"The learner with {counted(threads, 'thread')}: {alone.version_s:.3g} s per "
                "version."
            )
            if self._is_late() or (before and not does_help(before.version_s, alone.version_s)):
                break
            before = alone

    def _helpful(self) -> list[int]:
        """Learner threads that are worth their cores: others need not meet any load."""
        fewest, *more = sorted(self.learners)
        alone_s = self.learners[fewest].alone.version_s
        return [fewest, *(n for n in more if self.learners[n].alone.version_s < alone_s)]

    def _measure_loaded(self, point: Point, threads: int) -> None:
        """The learner with so many threads, and actors on the other cores."""
        members = self._members(point.plan)[: self._num_cores - threads]
        span = span_of(LOADED_S, WARM_S, is_alone=False)
        for member in members:
            member.tell(Command(do="work", span=span))
        self._trainer.tell(Command(do="work", span=span, threads=threads))
        readings = [member.hear(Sampled) for member in members]
        trained = self._trainer.hear(Trained)
        learner = self.learners[threads]
        learner.loaded = learner.loaded or trained  # the first had the most company
        point.loaded = readings

    def _measure_more_threads(self) -> None:
        """Actors with two threads, where there is something for a second one to do. They meet the
        same load as their twins with one thread, so that part is taken from those."""
        if self._config.actor_threads != "auto":
            return
        heavy = [p for p in self.points if is_inference_heavy(p.alone, p.plan, self._num_cores)]
        if not heavy or self._is_late():
            return
        sampler = self._crew.start(f"{SAMPLER}-two-threads", 2)
        for twin in sorted(heavy, key=lambda point: point.plan.num_actors)[:MOST_HEAVY]:
            plan = twin.plan.model_copy(update={"actor_threads": 2})
            built = sampler.ask(Command(do="build", plan=plan.model_dump(mode="json")), Built)
            point = self._measure_alone(sampler, plan, built)
            growth = [reading.unroll_s / twin.alone.unroll_s for reading in twin.loaded]
            alone = point.alone
            point.loaded = [
                alone.model_copy(update={"unroll_s": factor * alone.unroll_s}) for factor in growth
            ]


def bounded(plan: RunPlan) -> RunPlan:
    """The same plan with a replay store that is filled in a moment."""
    if not plan.replay_unrolls:
        return plan
    filled = min(plan.replay_unrolls, FILL_UNROLLS, max(1, FILL_BYTES // plan.slot_bytes))
    in_flight = plan.num_slots - max(plan.replay_unrolls, plan.warmup_unrolls)
    return plan.model_copy(
        update={
            "replay_unrolls": filled,
            "warmup_unrolls": filled,
            "num_slots": filled + in_flight,
            "shares_cores": False,
        }
    )
