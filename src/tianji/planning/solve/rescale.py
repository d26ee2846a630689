"""Scale a profile to the speeds that a run shows now. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass

from tianji.costs.profile import Profile
from tianji.costs.work import Work, actor_work, learner_cost, to_work


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
