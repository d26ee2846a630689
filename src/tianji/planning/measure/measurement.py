"""Measure the costs of a run's parts: each one alone, then actors and learner together.

Alone, one process works and the others sleep. Loaded, the learner and as many actors as there are
cores left work in the same span, but no more actors than the run would have. A learner that leaves
no core for an actor is not measured under load.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tianji.config.machine import Machine
from tianji.config.plan import RunPlan
from tianji.config.run import LimiterConfig, RunConfig
from tianji.costs.profile import ActorCost, LearnerCost
from tianji.envs.build import Probe
from tianji.errors import UsageError
from tianji.planning.measure.choices import (
    actor_counts,
    does_help,
    is_inference_heavy,
    is_waiting,
    loads,
    num_actors_at_once,
    thread_counts,
)
from tianji.planning.measure.crew import (
    Build,
    Built,
    Crew,
    Measure,
    Member,
    RecordUnroll,
    Sampled,
    span_of,
)
from tianji.planning.resolve.resolve import resolve
from tianji.types import Unroll
from tianji.wording import counted, to_percent

ALONE_S = 0.6
LOADED_S = 0.6
WARM_S = 0.1
# How much of a replay store is filled: enough that sampling leaves the caches.
FILL_BYTES = 256 << 20
FILL_UNROLLS = 20_000
MOST_HEAVY = 3  # numbers of actors that are measured with two threads, too
MEMORY_SHARE = 0.5  # of the free memory, for the environments that are built here


@dataclass
class Point:
    """One number of actors: the reading alone, and the duration of an unroll under load."""

    plan: RunPlan
    built: Built
    alone: Sampled
    loaded_s: float

    @property
    def cost(self) -> ActorCost:
        unroll = self.alone.cost.unroll.model_copy(update={"loaded_s": self.loaded_s})
        return self.alone.cost.model_copy(update={"unroll": unroll})

    def add_load(self, readings: Sequence[Sampled]) -> None:
        """Take the median under load, unless the actor mostly waits: waits do not get longer."""
        unroll = self.alone.cost.unroll
        if not is_waiting(unroll.alone_s, unroll.cpu_s):
            self.loaded_s = statistics.median(r.cost.unroll.alone_s for r in readings)


@dataclass
class CostMeasurement:
    """Measures point by point until the deadline; the first point of each kind always.

    learners: by number of threads.
    start_up_s: the time in which a process loaded its libraries and built its first actor.
    """

    crew: Crew
    machine: Machine
    probe: Probe
    deadline_s: float
    tell: Callable[[str], None]
    points: list[Point] = field(default_factory=list)
    learners: dict[int, LearnerCost] = field(default_factory=dict)
    policy_bytes: int = 0
    start_up_s: float = 0.0
    _loaded_learners: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._config = self.crew.spec.config
        self._num_cores = len(self.machine.cores)

    def run(self) -> None:
        began_s = time.monotonic()
        self._start()
        agents = self.probe.num_agents
        plan, *others = self._plans(actor_counts(self._config, self.machine, num_agents=agents))
        built = self._build(plan)
        self.start_up_s = time.monotonic() - began_s
        self._measure_learner(self._actors[0].ask(RecordUnroll(), dict))
        self._measure_point(plan, built, 0, len(others))
        unroll = self.points[0].alone.cost.unroll
        if is_waiting(unroll.alone_s, unroll.cpu_s):
            counts = actor_counts(self._config, self.machine, True, agents)
            more = self._plans(counts)
            others = [other for other in more if other.num_actors != plan.num_actors]
        for index, other in enumerate(others, start=1):
            if not self._is_late() and self._is_affordable(other):
                self._measure_point(other, self._build(other), index, len(others))
        self._measure_two_threads()

    def _start(self) -> None:
        """Start all processes together: most of the time they load libraries."""
        config, threads = self._config, self.crew.spec.plan.actor_threads
        count = num_actors_at_once(config, self.machine, self.probe.num_agents)
        self.tell(f"Starting {count + 1} processes for the measurement.")
        self._actors = [self.crew.start(f"actor-bench-{i}", threads) for i in range(count)]
        most_threads = max(thread_counts(config, self.machine))
        self._learner = self.crew.start("learner-bench", most_threads)

    def _is_late(self) -> bool:
        return time.monotonic() > self.deadline_s

    def _plans(self, counts: Sequence[int]) -> list[RunPlan]:
        """Return the plans with these numbers of actors, without those that cannot run here."""
        found: list[RunPlan] = []
        error: UsageError | None = None
        for num_actors in counts:
            fixed = {"num_actors": num_actors, "learner_threads": 1}
            config = self._config.model_copy(update=fixed)
            try:
                found.append(resolve(config, self.machine, self.probe))
            except UsageError as refused:
                error = refused
        if error is not None and not found:
            raise error
        return found

    def _is_affordable(self, plan: RunPlan) -> bool:
        """Return whether there is memory and time to build the environments of this plan."""
        seen = max(self.points, key=lambda point: point.plan.envs_per_actor)
        growth = plan.envs_per_actor / seen.plan.envs_per_actor
        needed_bytes = len(self._members(plan)) * growth * seen.built.grown_bytes
        left_s = self.deadline_s - time.monotonic()
        has_memory = needed_bytes < MEMORY_SHARE * self.machine.memory_bytes
        return has_memory and growth * seen.built.build_s < left_s

    def _members(self, plan: RunPlan) -> list[Member]:
        return self._actors[: plan.num_actors]

    def _build(self, plan: RunPlan) -> Built:
        members = self._members(plan)
        for member in members:
            member.tell(Build(plan))
        built, *_ = [member.hear(Built) for member in members]
        return built

    def _measure_point(self, plan: RunPlan, built: Built, index: int, num_others: int) -> None:
        """Measure an actor alone, then beside learners with different numbers of threads."""
        point = self._measure_alone(self._actors[0], plan, built)
        for threads in loads(self._helpful_threads(), index, num_others, self._num_cores):
            self._measure_loaded(point, threads)

    def _measure_alone(self, actor: Member, plan: RunPlan, built: Built) -> Point:
        alone = actor.ask(Measure(span=span_of(ALONE_S, WARM_S, is_alone=True)), Sampled)
        self.tell(
            f"An actor with {counted(plan.envs_per_actor, 'environment')}: "
            f"{plan.steps_per_unroll / alone.cost.unroll.alone_s:,.0f} steps/s, "
            f"{to_percent(alone.cost.environment_share)} of its time in the environment."
        )
        self.points.append(Point(plan, built, alone, alone.cost.unroll.alone_s))
        return self.points[-1]

    def _measure_learner(self, unroll: Unroll) -> None:
        plan = learner_plan(self._config, self.machine, self.probe)
        self.policy_bytes = self._learner.ask(Build(plan, unroll), Built).policy_bytes
        before_s = math.inf
        for threads in thread_counts(self._config, self.machine):
            span = span_of(ALONE_S, WARM_S, is_alone=True)
            cost = self._learner.ask(Measure(span=span, threads=threads), LearnerCost)
            self.learners[threads] = cost
            alone_s = cost.version.alone_s
            self.tell(
                f"The learner with {counted(threads, 'thread')}: {alone_s:.3g} s per version."
            )
            if self._is_late() or not does_help(before_s, alone_s):
                break
            before_s = alone_s

    def _helpful_threads(self) -> list[int]:
        """Return the numbers of learner threads that are faster than the fewest."""
        fewest, *more = sorted(self.learners)
        alone_s = {threads: cost.version.alone_s for threads, cost in self.learners.items()}
        return [fewest, *(n for n in more if alone_s[n] < alone_s[fewest])]

    def _measure_loaded(self, point: Point, threads: int) -> None:
        """Measure a learner with this many threads, and actors on the other cores."""
        members = self._members(point.plan)[: self._num_cores - threads]
        measure = Measure(span=span_of(LOADED_S, WARM_S, is_alone=False), threads=threads)
        for member in (*members, self._learner):
            member.tell(measure)
        point.add_load([member.hear(Sampled) for member in members])
        loaded = self._learner.hear(LearnerCost).version.alone_s
        if threads not in self._loaded_learners:  # the first one had the most actors beside it
            self._loaded_learners.add(threads)
            cost = self.learners[threads]
            version = cost.version.model_copy(update={"loaded_s": loaded})
            self.learners[threads] = cost.model_copy(update={"version": version})

    def _measure_two_threads(self) -> None:
        """Measure actors with two threads, if inference is long enough to share. Their growth
        under load is that of the same actors with one thread."""
        heavy = [p for p in self.points if is_inference_heavy(p.alone, p.plan, self._num_cores)]
        if self._config.actor_threads != "auto" or not heavy or self._is_late():
            return
        actor = self.crew.start("actor-bench-two-threads", 2)
        for twin in sorted(heavy, key=lambda point: point.plan.num_actors)[:MOST_HEAVY]:
            plan = twin.plan.model_copy(update={"actor_threads": 2})
            built = actor.ask(Build(plan), Built)
            point = self._measure_alone(actor, plan, built)
            before, after = twin.alone.cost.unroll, point.alone.cost.unroll
            point.loaded_s = twin.loaded_s * after.alone_s / before.alone_s


def learner_plan(config: RunConfig, machine: Machine, probe: Probe) -> RunPlan:
    """Return the plan that a learner is measured with. What it costs does not depend on who waits
    for whom, and only pacing lets a store be filled without a learner."""
    paced = {"balance": "paced", "queue_size": "auto", "limiter": LimiterConfig()}
    return with_small_replay(resolve(config.model_copy(update=paced), machine, probe))


def with_small_replay(plan: RunPlan) -> RunPlan:
    """Return the plan with a replay store that is filled in a moment."""
    if not plan.replay_rows:
        return plan
    held = plan.replay_rows * plan.num_actors // plan.unroll_length
    filled = max(1, min(held, FILL_UNROLLS, FILL_BYTES // plan.slot_bytes))
    rows = -(-filled // plan.num_actors) * plan.unroll_length
    return plan.model_copy(
        update={
            "replay_rows": rows,
            "warmup_unrolls": filled,
            "shares_cores": False,
        }
    )
