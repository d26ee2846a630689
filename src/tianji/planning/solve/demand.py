"""Demand: what a run asks of a machine, in numbers. planning/resolve/ derives it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SharedBytes:
    """Shared memory of one way to share the environments, in bytes."""

    in_flight: int
    """Slots of unrolls that are made, wait or are trained on."""
    replay: int
    """Slots of what the replay store keeps, or of its warm-up."""
    control: int
    """Lanes, gauges, bells."""

    @property
    def total(self) -> int:
        return self.in_flight + self.replay + self.control


@dataclass(frozen=True, slots=True)
class Demand:
    """What does not change with the shares of the machine, and what the person has fixed."""

    num_envs: int
    unroll_length: int
    steps_per_version: int
    trained_steps_per_version: int
    """Every epoch, or every sampled step, counts."""
    ratio: float
    """Items taken per item put."""
    staleness: float
    """P = B_s / N_s of the paper's equation 2: the steps of one batch over the steps that it is
    drawn from. 1 for a queue."""
    lag_target: int
    max_lag: int
    shared: Mapping[int, SharedBytes]
    """By number of actors; only numbers that share the environments and a version evenly."""
    policy_copies: int
    """How often the published policy lies in shared memory."""
    num_actors: int | None = None
    """Fixed by hand; as the two that follow."""
    learner_threads: int | None = None
    actor_threads: int | None = None
    has_evaluator: bool = False

    def unrolls_per_version(self, num_actors: int) -> int:
        steps_per_unroll = self.unroll_length * (self.num_envs // num_actors)
        return self.steps_per_version // steps_per_unroll
