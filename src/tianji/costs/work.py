"""Costs between the points that a profile has measured. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass

from tianji.costs.profile import ActorCost, Cost, LearnerCost, Profile


@dataclass(frozen=True, slots=True)
class Work:
    """A piece of work: its duration, its processor time, and how both grow under load.

    strain: the duration while every other core is busy, divided by the duration alone.
    """

    alone_s: float
    cpu_s: float
    strain: float

    def under(self, load: float) -> Work:
        """Return the same work while the other cores are busy for this share of the time.

        The speed, not the duration, is the mean of the speeds with and without load.
        """
        growth = 1 / (1 - load * (1 - 1 / self.strain))
        return Work(self.alone_s * growth, self.cpu_s * growth, 1.0)

    @property
    def cores(self) -> float:
        """Return how many cores the work keeps busy."""
        return self.cpu_s / self.alone_s if self.alone_s > 0 else 1.0


def to_work(cost: Cost) -> Work:
    # A load that makes work faster is noise of the measurement.
    strain = max(1.0, cost.loaded_s / cost.alone_s) if cost.alone_s > 0 else 1.0
    return Work(cost.alone_s, cost.cpu_s, strain)


@dataclass(frozen=True, slots=True)
class ActorWork:
    """The work of one actor for one unroll, and its memory."""

    unroll: Work
    environment_share: float
    memory_bytes: int


def actor_threads_measured(profile: Profile) -> tuple[int, ...]:
    return tuple(sorted({actor.threads for actor in profile.actors}))


def actor_work(profile: Profile, num_envs: int, threads: int) -> ActorWork:
    """Return the measured work, or interpolate between the two nearest measured points."""
    near = min(actor_threads_measured(profile), key=lambda measured: abs(measured - threads))
    points = sorted((a for a in profile.actors if a.threads == near), key=lambda a: a.num_envs)
    low = [point for point in points if point.num_envs <= num_envs][-1:] or points[:1]
    high = [point for point in points if point.num_envs >= num_envs][:1] or points[-1:]
    return _between(low[0], high[0], num_envs)


def _between(low: ActorCost, high: ActorCost, num_envs: int) -> ActorWork:
    """Interpolate linearly. Beyond the last point, the duration grows with the environments;
    below the first one, it stays the same."""
    width = high.num_envs - low.num_envs
    share = (num_envs - low.num_envs) / width if width else 0.0
    growth = 1.0 if width else max(1.0, num_envs / low.num_envs)

    def mix(first: float, second: float) -> float:
        return first + share * (second - first)

    first, second = to_work(low.unroll), to_work(high.unroll)
    unroll = Work(
        growth * mix(first.alone_s, second.alone_s),
        growth * mix(first.cpu_s, second.cpu_s),
        mix(first.strain, second.strain),
    )
    memory = round(mix(low.memory_bytes, high.memory_bytes))
    return ActorWork(unroll, mix(low.environment_share, high.environment_share), memory)


def learner_cost(profile: Profile, threads: int) -> LearnerCost:
    """Return the cost with this number of threads, or with the nearest one that was measured."""
    return min(profile.learners, key=lambda cost: (abs(cost.threads - threads), cost.threads))


def largest_noise(profile: Profile) -> float:
    """Return the largest relative noise of all measured durations."""
    costs = [*(a.unroll for a in profile.actors), *(c.version for c in profile.learners)]
    return max(cost.noise for cost in costs)
