"""The profile of a run: what its parts cost on one machine, in seconds and bytes.

`planning/measure/` measures it; the planner and the virtual clock read it. Durations are medians
of several repeats. Fields that nothing reads stay, because profiles are kept as files.
"""

from __future__ import annotations

from tianji.config.schema import Record

SHARES = ("num_actors", "learner_threads", "actor_threads")  # settings that share the machine
RATES = ("produced", "received", "trained")  # environment steps per second


class Cost(Record):
    """The cost of one piece of work.

    alone_s: its duration while the rest of the machine is idle.
    loaded_s: its duration while the other cores work on other parts of the same run.
    cpu_s: processor time of all its threads; less than alone_s if it waits for something.
    noise: half of the interquartile range of alone_s, divided by the median.
    """

    alone_s: float
    loaded_s: float
    cpu_s: float
    noise: float

    def times(self, duration: float, processor: float) -> Cost:
        """Return this cost with its durations and its processor time multiplied."""
        return Cost(
            alone_s=self.alone_s * duration,
            loaded_s=self.loaded_s * duration,
            cpu_s=self.cpu_s * processor,
            noise=self.noise,
        )


class ActorCost(Record):
    """The cost of one unroll of an actor with `num_envs` environments.

    environment_share: the share of the unroll's duration that the environments take.
    unevenness: the 99th percentile of step durations divided by their median.
    memory_bytes: memory of the process, with its share of what processes share, such as libraries.
    """

    num_envs: int
    threads: int
    unroll: Cost
    environment_share: float
    unevenness: float
    memory_bytes: int


class LearnerCost(Record):
    """The cost of one version in the learner's process, which holds the buffer too.

    version: receiving its unrolls, storing them, every update, publishing.
    update_s: one optimiser step of it.
    receive_s: the buffer's work for one unroll.
    memory_bytes: as for an actor, without the shared slots.
    """

    threads: int
    version: Cost
    update_s: float
    receive_s: float
    publish_s: float
    memory_bytes: int


class Rehearsal(Record):
    """A short test run of one plan. Rates are environment steps per second, 0 if it failed.

    ratio: items taken per item put, from the start.
    computed: the rate that the costs of the same profile predict for this plan.
    """

    num_actors: int
    learner_threads: int
    actor_threads: int
    produced: float
    received: float
    trained: float
    lag_versions: float
    ratio: float | None = None
    computed: float | None = None

    @property
    def shares(self) -> tuple[int, int, int]:
        """Return the numbers of actors, of learner threads and of threads of each actor."""
        return self.num_actors, self.learner_threads, self.actor_threads


class Profile(Record):
    """Everything that was measured about one run on this machine.

    settings: the values of settings that were `auto`, by their path.
    num_cores: usable cores of the machine; 0 if unknown.
    send_s: the actor's work to hand over one unroll.
    unroll_bytes: the size of one unroll of the actor with the most environments.
    is_disturbed: other programs used the machine during the measurement.
    warnings: sentences about slow, uneven or memory-hungry environments, and about noise.
    """

    settings: dict[str, int] = {}
    num_cores: int = 0
    steps_per_version: int
    actors: tuple[ActorCost, ...]
    learners: tuple[LearnerCost, ...]
    send_s: float
    policy_bytes: int
    unroll_bytes: int
    rehearsals: tuple[Rehearsal, ...] = ()
    is_disturbed: bool = False
    warnings: tuple[str, ...] = ()
    profiling_s: float = 0.0
