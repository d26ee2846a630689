"""A profile from two numbers that a person gives, in place of a measured one."""

from __future__ import annotations

from tianji.algorithms.interface import Cadence
from tianji.config.plan import RunPlan
from tianji.costs.profile import ActorCost, Cost, LearnerCost, Profile

UPDATES = 8
"""Updates of a version; between two of them the buffer looks at arrivals."""


def profile_by_hand(
    plan: RunPlan, cadence: Cadence, unroll_s: float, version_s: float, policy_bytes: int
) -> Profile:
    """Return a profile in which both keep one core busy and other cores do not slow them down.

    unroll_s: one unroll of an actor of this plan; version_s: one version of its learner.
    """
    actor = ActorCost(
        num_envs=plan.envs_per_actor,
        threads=plan.actor_threads,
        unroll=_even(unroll_s),
        environment_share=1.0,
        unevenness=1.0,
        memory_bytes=0,
    )
    learner = LearnerCost(
        threads=plan.learner_threads,
        version=_even(version_s),
        update_s=version_s / UPDATES,
        receive_s=0.0,
        publish_s=0.0,
        memory_bytes=0,
    )
    return Profile(
        steps_per_version=cadence.steps_per_version,
        actors=(actor,),
        learners=(learner,),
        send_s=0.0,
        policy_bytes=policy_bytes,
        unroll_bytes=plan.slot_bytes,
    )


def _even(seconds: float) -> Cost:
    return Cost(alone_s=seconds, loaded_s=seconds, cpu_s=seconds, noise=0.0)
