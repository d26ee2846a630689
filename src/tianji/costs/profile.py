"""What the parts of one run cost on one machine. `planning/measure/` measures it.

The planner and the virtual clock read it. Times are seconds, medians of several repeats.
"""

from __future__ import annotations

from tianji.config.schema import Record


class Cost(Record):
    """One piece of work."""

    alone_s: float
    """While the rest of the machine is idle."""
    loaded_s: float
    """While every core is at work on other parts of the same run."""
    cpu_s: float
    """Processor time of all its threads, alone; less than alone_s where it waits for something."""
    noise: float
    """Half of the interquartile range over the median, of alone_s."""


class ActorCost(Record):
    """One actor with so many environments."""

    num_envs: int
    threads: int
    unroll: Cost
    """One unroll: inference, environments, assembling, sending."""
    environment_share: float
    """Of the unroll's time, what is spent inside the environments."""
    unevenness: float
    """How long one step in a hundred takes, over the median step."""
    memory_bytes: int
    """Of its process: its own, and its part of what processes share, such as libraries."""


class LearnerCost(Record):
    """The learner's worker, buffer included."""

    threads: int
    version: Cost
    """One version: receiving its unrolls, storing, every update, publishing."""
    update_s: float
    """One optimiser step of it."""
    receive_s: float
    """The buffer's part for one unroll: what bounds communication on one machine."""
    publish_s: float
    memory_bytes: int
    """Of its process, as an actor's; without the shared slots."""


class Rehearsal(Record):
    """A few seconds of the real thing under one plan; rates of 0 where it failed."""

    num_actors: int
    learner_threads: int
    actor_threads: int
    produced: float
    received: float
    trained: float
    """Environment steps per second."""
    lag_versions: float
    ratio: float | None = None
    """Items taken per item put, from the start."""
    computed: float | None = None
    """The rate that the costs of the same profile promised for it; None where it was not noted."""

    @property
    def shares(self) -> tuple[int, int, int]:
        """Numbers of actors, of learner threads and of threads of an actor."""
        return self.num_actors, self.learner_threads, self.actor_threads


class Profile(Record):
    """Everything that was measured about one run on this machine."""

    settings: dict[str, int] = {}
    """Settings that were written as `auto` and what they are in this profile, by their path."""
    num_cores: int = 0
    """Usable cores of the machine; 0 where that was not noted."""
    steps_per_version: int
    actors: tuple[ActorCost, ...]
    """By num_envs and threads."""
    learners: tuple[LearnerCost, ...]
    """By threads."""
    send_s: float
    """The actor's part of handing over one unroll."""
    policy_bytes: int
    unroll_bytes: int
    """One unroll of the actor with the most environments."""
    rehearsals: tuple[Rehearsal, ...] = ()
    is_disturbed: bool = False
    """Something else used the machine while it was measured."""
    warnings: tuple[str, ...] = ()
    """Environments that are slow, uneven or memory-hungry, and noise, in words."""
    profiling_s: float = 0.0
