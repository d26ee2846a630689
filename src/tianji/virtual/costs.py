"""The costs of ticks on the virtual clock: measured, given by a person, or from a fixed table."""

from __future__ import annotations

from dataclasses import dataclass

from tianji.algorithms.interface import Cadence
from tianji.config.plan import RunPlan
from tianji.costs.profile import ActorCost, Cost, LearnerCost, Profile
from tianji.costs.work import Work, actor_work, learner_cost, to_work

ROW_S = 60e-6  # one step of an actor, without its environments: inference and bookkeeping
ENV_STEP_S = 5e-6  # one step of one environment
RECEIVE_S = 10e-6
UPDATE_S = 500e-6
PUBLISH_S = 30e-6


@dataclass(frozen=True, slots=True)
class LearnerParts:
    """The costs of a version in parts: between two updates the buffer looks at arrivals.

    receive_s: time to receive one unroll.
    update_s: time of one optimiser step, with its share of making the batch.
    num_updates: updates of one version.
    """

    receive_s: float
    update_s: float
    publish_s: float
    num_updates: int
    cores: float = 1.0
    strain: float = 1.0

    def work(self, num_received: int, num_updates: int, num_published: int) -> Work:
        """Return the work of one tick."""
        busy_s = (
            num_received * self.receive_s
            + num_updates * self.update_s
            + num_published * self.publish_s
        )
        return Work(busy_s, busy_s * self.cores, self.strain)


def learner_parts(profile: Profile, threads: int, unrolls_per_version: float) -> LearnerParts:
    """Split a measured version: what is not receiving or publishing belongs to the updates, whose
    number follows from the duration of one."""
    cost = learner_cost(profile, threads)
    version = to_work(cost.version)
    receiving_s = unrolls_per_version * cost.receive_s
    updating_s = version.alone_s - receiving_s - cost.publish_s
    if updating_s <= 0:  # noise: parts cannot take longer than the whole
        updating_s = version.alone_s / 2
    num_updates = max(1, round(updating_s / cost.update_s)) if cost.update_s > 0 else 1
    return LearnerParts(
        receive_s=cost.receive_s,
        update_s=updating_s / num_updates,
        publish_s=cost.publish_s,
        num_updates=num_updates,
        cores=version.cores,
        strain=version.strain,
    )


@dataclass(frozen=True, slots=True)
class RunCosts:
    """The costs of one run under one plan.

    row: one step of all environments of an actor.
    environment_share: the share of a row that is spent in the environments.
    """

    row: Work
    environment_share: float
    learner: LearnerParts


# Work that takes no time.
FREE = RunCosts(Work(0.0, 0.0, 1.0), 0.0, LearnerParts(0.0, 0.0, 0.0, num_updates=1))


def costs_of(plan: RunPlan, profile: Profile | None) -> RunCosts:
    """Return measured costs; without a profile, those of the table, equal on every machine."""
    if profile is None:
        envs_s = ENV_STEP_S * plan.envs_per_actor
        row_s = ROW_S + envs_s
        parts = LearnerParts(RECEIVE_S, UPDATE_S, PUBLISH_S, num_updates=1)
        return RunCosts(Work(row_s, row_s, 1.0), envs_s / row_s, parts)
    found = actor_work(profile, plan.envs_per_actor, plan.actor_threads)
    unroll, rows = found.unroll, plan.unroll_length
    return RunCosts(
        Work(unroll.alone_s / rows, unroll.cpu_s / rows, unroll.strain),
        found.environment_share,
        learner_parts(profile, plan.learner_threads, plan.unrolls_per_version),
    )


UPDATES = 8  # updates of a version; between two of them the buffer looks at arrivals


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
