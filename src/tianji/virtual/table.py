"""What the parts of a run cost on the virtual clock: measured, or by a fixed table."""

from __future__ import annotations

from dataclasses import dataclass

from tianji.config.plan import RunPlan
from tianji.costs.profile import Profile
from tianji.costs.work import Work, actor_work
from tianji.virtual.costs import LearnerParts, learner_parts

ROW_S = 60e-6
"""One step of an actor, whatever its environments: inference and bookkeeping."""
ENV_STEP_S = 5e-6
"""One step of one environment."""
RECEIVE_S = 10e-6
UPDATE_S = 500e-6
PUBLISH_S = 30e-6


@dataclass(frozen=True, slots=True)
class RunCosts:
    """Of one run under one plan."""

    row: Work
    """One step of all environments of an actor."""
    environment_share: float
    """Of a row, what is spent inside the environments."""
    learner: LearnerParts


def costs_of(plan: RunPlan, profile: Profile | None) -> RunCosts:
    return _by_table(plan) if profile is None else _measured(plan, profile)


def _by_table(plan: RunPlan) -> RunCosts:
    """The same on every machine, so that a run can be repeated anywhere."""
    envs_s = ENV_STEP_S * plan.envs_per_actor
    row_s = ROW_S + envs_s
    parts = LearnerParts(RECEIVE_S, UPDATE_S, PUBLISH_S, num_updates=1)
    return RunCosts(Work(row_s, row_s, 1.0), envs_s / row_s, parts)


def _measured(plan: RunPlan, profile: Profile) -> RunCosts:
    found = actor_work(profile, plan.envs_per_actor, plan.actor_threads)
    unroll, rows = found.unroll, plan.unroll_length
    return RunCosts(
        Work(unroll.alone_s / rows, unroll.cpu_s / rows, unroll.strain),
        found.environment_share,
        learner_parts(profile, plan.learner_threads, plan.unrolls_per_version),
    )
