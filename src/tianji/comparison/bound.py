"""The speed that a run could have if its two sides never waited: that of the slower one alone."""

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
    """Environment steps per second of each side alone, on the cores that the run gives it."""

    actors_alone: float
    learner_alone: float


def lower(bound: Bound) -> float:
    return min(bound["actors_alone"], bound["learner_alone"])


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
    """Return the bound of a run. Where threads are more than cores, each has its share of them; in
    one process, actors take turns.

    plan, num_cores: of one learner with its actors; the run has config.num_learners of them.
    """
    work = actor_work(profile, plan.envs_per_actor, plan.actor_threads)
    version = learner_cost(profile, plan.learner_threads).version
    at_once = plan.num_actors if config.has_processes else 1
    threads = at_once * plan.actor_threads + plan.learner_threads
    share = min(1.0, num_cores / threads) if config.has_processes else 1.0
    each = share * config.num_learners
    return Bound(
        actors_alone=each * at_once * plan.steps_per_unroll / work.unroll.alone_s,
        learner_alone=each * profile.steps_per_version / version.alone_s,
    )
