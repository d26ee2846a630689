"""What a run asks of a machine, in numbers. `planning/resolve/` derives it from the config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tianji.planning.solve.run_memory import SharedBytes


@dataclass(frozen=True, slots=True)
class Demand:
    """The numbers that do not depend on the shares of the machine, and the shares set by hand.

    trained_steps_per_version: every epoch, or every sampled step, counts.
    ratio: items taken per item put.
    staleness: P = B_s / N_s of the paper's equation 2: the steps of one batch divided by the steps
        that it is drawn from. 1 for a queue.
    shared: by number of actors; only numbers that divide the environments and a version evenly.
    policy_copies: copies of the published policy in shared memory.
    num_actors, learner_threads, actor_threads: None if the planner chooses.
    """

    num_envs: int
    unroll_length: int
    steps_per_version: int
    trained_steps_per_version: int
    ratio: float
    staleness: float
    lag_target: int
    max_lag: int
    shared: Mapping[int, SharedBytes]
    policy_copies: int
    num_actors: int | None = None
    learner_threads: int | None = None
    actor_threads: int | None = None
    has_evaluator: bool = False

    def unrolls_per_version(self, num_actors: int) -> int:
        steps_per_unroll = self.unroll_length * (self.num_envs // num_actors)
        return self.steps_per_version // steps_per_unroll
