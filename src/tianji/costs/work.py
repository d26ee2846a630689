"""Costs between the points that a profile has measured. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tianji.costs.profile import ActorCost, Cost, LearnerCost, Profile


@dataclass(frozen=True, slots=True)
class Work:
    """One piece of work: how long it takes, on how much processor time, and how both grow when
    every other core is at work."""

    alone_s: float
    cpu_s: float
    strain: float
    """Its duration under load over its duration alone; 1 where load does not touch it."""

    def under(self, load: float) -> Work:
        """The same while the other cores are at work for this share of time: its speed, not its
        duration, is that share's mean of fast and slow."""
        growth = 1 / (1 - load * (1 - 1 / self.strain))
        return Work(self.alone_s * growth, self.cpu_s * growth, 1.0)

    @property
    def cores(self) -> float:
        """Cores it keeps busy while it lasts."""
        return self.cpu_s / self.alone_s if self.alone_s > 0 else 1.0


def to_work(cost: Cost) -> Work:
    # A load that makes work faster is noise of the measurement.
    strain = max(1.0, cost.loaded_s / cost.alone_s) if cost.alone_s > 0 else 1.0
    return Work(cost.alone_s, cost.cpu_s, strain)


@dataclass(frozen=True, slots=True)
class ActorWork:
    """One actor with so many environments."""

    unroll: Work
    environment_share: float
    memory_bytes: int


def actor_threads_measured(profile: Profile) -> tuple[int, ...]:
    return tuple(sorted({actor.threads for actor in profile.actors}))


def actor_work(profile: Profile, num_envs: int, threads: int) -> ActorWork:
    """Measured, or on the line between the two measured points around it."""
    near = min(actor_threads_measured(profile), key=lambda measured: abs(measured - threads))
    points = sorted((a for a in profile.actors if a.threads == near), key=lambda a: a.num_envs)
    below = [point for point in points if point.num_envs <= num_envs] or points[:1]
    above = [point for point in points if point.num_envs >= num_envs] or points[-1:]
    if below[-1].num_envs == above[0].num_envs:
        return _beyond(below[-1], num_envs)
    return _between(below[-1], above[0], num_envs)


def _beyond(point: ActorCost, num_envs: int) -> ActorWork:
    """Past the last measured point an actor's time grows with its environments, and below the
    first it is not known to shrink."""
    growth = max(1.0, num_envs / point.num_envs)
    work = to_work(point.unroll)
    unroll = Work(work.alone_s * growth, work.cpu_s * growth, work.strain)
    return ActorWork(unroll, point.environment_share, point.memory_bytes)


def _between(low: ActorCost, high: ActorCost, num_envs: int) -> ActorWork:
    share = (num_envs - low.num_envs) / (high.num_envs - low.num_envs)

    def mix(first: float, second: float) -> float:
        return first + share * (second - first)

    first, second = to_work(low.unroll), to_work(high.unroll)
    unroll = Work(
        mix(first.alone_s, second.alone_s),
        mix(first.cpu_s, second.cpu_s),
        mix(first.strain, second.strain),
    )
    memory = round(mix(low.memory_bytes, high.memory_bytes))
    return ActorWork(unroll, mix(low.environment_share, high.environment_share), memory)


def learner_cost(profile: Profile, threads: int) -> LearnerCost:
    """With these threads, or with the nearest number that was measured."""
    return min(profile.learners, key=lambda cost: (abs(cost.threads - threads), cost.threads))


def noise_of(costs: Sequence[Cost]) -> float:
    """The largest relative noise among these figures."""
    return max((cost.noise for cost in costs), default=0.0)
