"""Find a better plan for a run that is out of balance; it is used from the next checkpoint on.

The plan is solved from the profile of the run, scaled to the speeds that the run shows now.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from tianji.balance.drift import Speeds
from tianji.config.machine import Machine
from tianji.config.plan import IN_STEP, RunPlan
from tianji.config.run import RunConfig
from tianji.costs.profile import SHARES, Profile
from tianji.costs.work import Work, actor_work, learner_cost, to_work
from tianji.envs.build import EnvSources, Probe
from tianji.errors import UsageError
from tianji.planning.keep import kept_profile
from tianji.planning.planned import Planned
from tianji.planning.resolve.resolve import demand_of, resolve
from tianji.planning.solve.solve import solve
from tianji.types import Clock
from tianji.wording import to_percent

WORTH_SHARE = 0.10  # a new plan costs a restart of the workers; it must be this much faster
PAUSE_S = 60.0  # between two changes of plan: oscillating speeds are not followed


@dataclass
class Replanner:
    """`replanner(speeds)` returns whether it has found a better plan; `take()` returns that plan.

    plan: the one in use. note: a sentence about the last change.
    """

    config: RunConfig
    plan: RunPlan
    machine: Machine
    probe: Probe
    profile: Profile
    now_ns: Clock = time.monotonic_ns
    changes: int = 0
    note: str = ""
    _changed_ns: int | None = None
    _better: RunPlan | None = None

    def __call__(self, speeds: Speeds) -> bool:
        is_soon = self._changed_ns is not None and (
            self.now_ns() - self._changed_ns < PAUSE_S * 1e9
        )
        if is_soon or speeds.produced <= 0 or speeds.received <= 0:
            return False
        profile = rescaled(self.profile, observed_speeds(speeds, self.plan))
        demand = demand_of(self.config, self.probe)
        same = replace(demand, **{name: getattr(self.plan, name) for name in SHARES})
        try:
            now, better = (solve(profile, self.machine, asked) for asked in (same, demand))
        except UsageError:  # memory has become short
            return False
        gain = better.chosen.prediction.produced / now.chosen.prediction.produced - 1
        if gain < WORTH_SHARE:
            return False
        self._better = resolve(self.config, self.machine, self.probe, better)
        self.note = (
            f"The plan changes at this checkpoint, from {now.chosen.in_words()} to "
            f"{better.chosen.in_words()}: at the present speeds that should be "
            f"{to_percent(gain)} faster, {better.chosen.prediction.produced:,.0f} steps/s."
        )
        return True

    def take(self) -> RunPlan:
        """Return the better plan, which is in use from now on."""
        assert self._better is not None
        self.plan, self._better = self._better, None
        self._changed_ns = self.now_ns()
        self.changes += 1
        return self.plan


def replanner_for(planned: Planned, env: EnvSources, machine: Machine) -> Replanner | None:
    """Return a replanner for this run; None if there is no profile of it, as on a GPU. A kept
    profile may be of a paced run: where actors do not wait, there is nothing to balance."""
    config, solved = planned.config, planned.solved
    if not planned.plan.has_costs or planned.plan.balance not in IN_STEP:
        return None
    profile = solved.profile if solved else kept_profile(config, env, machine)
    if profile is None:
        return None
    return Replanner(config, planned.plan, machine, planned.probe, profile)


def observed_speeds(speeds: Speeds, plan: RunPlan) -> Observed:
    """Return the work that an unroll and a version take, from rates and shares of time."""
    unrolls_per_s = speeds.produced / plan.steps_per_unroll
    versions_per_s = speeds.received / (plan.unrolls_per_version * plan.steps_per_unroll)
    return Observed(
        envs_per_actor=plan.envs_per_actor,
        actor_threads=plan.actor_threads,
        learner_threads=plan.learner_threads,
        unroll_s=speeds.acting / unrolls_per_s,
        version_s=speeds.learning / versions_per_s,
        unroll_cpu_s=speeds.acting_cpu / unrolls_per_s,
        version_cpu_s=speeds.learning_cpu / versions_per_s,
    )


@dataclass(frozen=True, slots=True)
class Observed:
    """A running plan, and the work that an unroll and a version take now.

    unroll_cpu_s, version_cpu_s: processor time of that work; less if it waits for something.
    """

    envs_per_actor: int
    actor_threads: int
    learner_threads: int
    unroll_s: float
    version_s: float
    unroll_cpu_s: float
    version_cpu_s: float


def rescaled(profile: Profile, now: Observed) -> Profile:
    """Scale the cost of every actor and every learner as the ones in use have changed.

    A rehearsal stays if its computed rate is known: its plan is expected to reach the same share of
    its computed rate as before.
    """
    actor = actor_work(profile, now.envs_per_actor, now.actor_threads).unroll
    learner = to_work(learner_cost(profile, now.learner_threads).version)
    acting = _changes(actor, now.unroll_s, now.unroll_cpu_s)
    learning = _changes(learner, now.version_s, now.version_cpu_s)
    duration, _ = learning
    actors = [c.model_copy(update={"unroll": c.unroll.times(*acting)}) for c in profile.actors]
    learners = [
        cost.model_copy(
            update={
                "version": cost.version.times(*learning),
                "update_s": cost.update_s * duration,
                "receive_s": cost.receive_s * duration,
                "publish_s": cost.publish_s * duration,
            }
        )
        for cost in profile.learners
    ]
    rehearsals = [rehearsal for rehearsal in profile.rehearsals if rehearsal.computed is not None]
    return profile.model_copy(
        update={
            "actors": tuple(actors),
            "learners": tuple(learners),
            "rehearsals": tuple(rehearsals),
        }
    )


def _changes(work: Work, seconds: float, cpu_s: float) -> tuple[float, float]:
    """Return the factors of duration and of processor time."""
    return _change(work.alone_s, work.strain, seconds), _change(work.cpu_s, work.strain, cpu_s)


def _change(alone: float, strain: float, now: float) -> float:
    """Return 1 between the durations alone and under load: the solver accounts for the load."""
    if now > alone * strain:
        return now / (alone * strain)
    return min(1.0, now / alone)
