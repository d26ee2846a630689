"""The speed that a run could have if its two sides never waited: that of the slower one alone, or
less where the cores are too few for the work of both."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict

from tianji.config.machine import Machine
from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.costs.profile import Profile
from tianji.costs.work import actor_work, learner_cost
from tianji.planning.keep import kept_profile


class Bound(TypedDict):
    """Environment steps per second of each side alone, with its threads on the run's cores."""

    actors_alone: float
    learner_alone: float
    both_never_idle: float
    """What the cores allow if none is ever idle: the processor time of both sides is shared out."""


def lower(bound: Bound) -> float:
    return min(bound["actors_alone"], bound["learner_alone"], bound["both_never_idle"])


def find_profile(config: RunConfig, lags: Iterable[int], machine: Machine) -> Profile | None:
    """Return the saved profile of such a run; None without one.

    lags: values of max_lag whose profiles serve too: alone, no side waits for the other.
    """
    for lag in dict.fromkeys((config.max_lag, *lags)):
        alike = config.model_copy(update={"max_lag": lag})
        profile = kept_profile(alike, alike.env, machine)
        if profile is not None:
            return profile
    return None


def bound_of(profile: Profile, plan: RunPlan, num_cores: int, config: RunConfig) -> Bound:
    """Return the bound of a run. A side has all cores while it is alone: the other one may wait
    all the time. Where its own threads are more, they share the cores; in one process, actors take
    turns.

    plan, num_cores: of one learner with its actors; the run has config.num_learners of them.
    """
    work = actor_work(profile, plan.envs_per_actor, plan.actor_threads)
    version = learner_cost(profile, plan.learner_threads).version
    at_once = plan.num_actors if config.has_processes else 1
    acting = min(1.0, num_cores / (at_once * plan.actor_threads))
    learning = min(1.0, num_cores / plan.learner_threads)
    actors_alone = acting * at_once * plan.steps_per_unroll / work.unroll.alone_s
    learner_alone = learning * profile.steps_per_version / version.alone_s
    cpu_s = work.unroll.cpu_s / plan.steps_per_unroll + version.cpu_s / profile.steps_per_version
    return Bound(
        actors_alone=config.num_learners * actors_alone,
        learner_alone=config.num_learners * learner_alone,
        both_never_idle=config.num_learners * num_cores / cpu_s,
    )
