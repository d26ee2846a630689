"""A profile corrected by what a run shows: the same costs, scaled to the speeds of today. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from tianji.costs.profile import ActorCost, Cost, LearnerCost, Profile
from tianji.costs.work import Work, actor_work, learner_cost, to_work


@dataclass(frozen=True, slots=True)
class Observed:
    """A running plan and the speeds it shows."""

    envs_per_actor: int
    actor_threads: int
    learner_threads: int
    unroll_s: float
    """Seconds of work that an unroll takes an actor now."""
    version_s: float
    """Seconds of work that a version takes the learner's worker now."""
    unroll_cpu_s: float
    version_cpu_s: float
    """Processor time of the same: less where work has become waiting."""


def rescaled(profile: Profile, now: Observed) -> Profile:
    """The profile with every actor's and every learner's cost scaled as the ones in use are.

    Rehearsals stay where it is noted what was computed for them: a plan reaches as much of its
    computation as before. Others were of other speeds.
    """
    actor = actor_work(profile, now.envs_per_actor, now.actor_threads).unroll
    learner = to_work(learner_cost(profile, now.learner_threads).version)
    slower_actor = _changes(actor, now.unroll_s, now.unroll_cpu_s)
    slower_learner = _changes(learner, now.version_s, now.version_cpu_s)
    return profile.model_copy(
        update={
            "actors": tuple(_scaled_actor(cost, slower_actor) for cost in profile.actors),
            "learners": tuple(_scaled_learner(c, slower_learner) for c in profile.learners),
            "rehearsals": tuple(r for r in profile.rehearsals if r.computed is not None),
        }
    )


@dataclass(frozen=True, slots=True)
class _Changes:
    """Times as much as was measured."""

    time: float
    processor: float


def _changes(work: Work, seconds: float, cpu_s: float) -> _Changes:
    return _Changes(
        time=_change(work.alone_s, work.strain, seconds),
        processor=_change(work.cpu_s, work.strain, cpu_s),
    )


def _change(alone: float, strain: float, now: float) -> float:
    """Between alone and loaded nothing has changed: how much else goes on is the solver's to
    account for."""
    if now > alone * strain:
        return now / (alone * strain)
    return min(1.0, now / alone)


def _scaled(cost: Cost, by: _Changes) -> Cost:
    return Cost(
        alone_s=cost.alone_s * by.time,
        loaded_s=cost.loaded_s * by.time,
        cpu_s=cost.cpu_s * by.processor,
        noise=cost.noise,
    )


def _scaled_actor(cost: ActorCost, by: _Changes) -> ActorCost:
    return cost.model_copy(update={"unroll": _scaled(cost.unroll, by)})


def _scaled_learner(cost: LearnerCost, by: _Changes) -> LearnerCost:
    parts = {name: getattr(cost, name) * by.time for name in ("update_s", "receive_s", "publish_s")}
    return cost.model_copy(update={"version": _scaled(cost.version, by), **parts})
