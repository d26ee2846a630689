"""RunPlan: everything that follows from a RunConfig on this machine. Frozen, JSON, saved with the
run; every process of the run is started from it."""

from __future__ import annotations

from typing import Any, Literal

from tianji.config.schema import Record

Bottleneck = Literal["sampling", "training", "communication", "processors"]


class Prediction(Record):
    """What a plan promises; rates in environment steps per second."""

    produced: float
    received: float
    trained: float
    """Every epoch, or every sampled step, counts."""
    lag_versions: float
    bottleneck: Bottleneck


class RunPlan(Record):
    """What will run, where, and how much memory it takes."""

    num_actors: int
    envs_per_actor: int
    learner_threads: int
    """Torch threads of the learner's process."""
    actor_threads: int = 1
    """Torch threads of each actor's process."""
    shares_cores: bool = False
    """There are more workers and threads than cores, so that actors may be parked."""
    cores: dict[str, tuple[int, ...]]
    """Cores each worker is pinned to; empty means free."""
    unroll_length: int
    lookahead: int
    num_rows: int
    """Rows of a slot: unroll_length + lookahead - 1."""
    keeps_final: bool
    """The world keeps final observations apart from the next row."""
    layout: dict[str, Any]
    """The fields of a slot (channels/layout.py)."""
    slot_bytes: int
    num_slots: int
    replay_unrolls: int
    """Unrolls the replay store keeps; 0 for a queue."""
    unrolls_per_version: int
    warmup_unrolls: int
    lag_target: int
    """Versions an unroll is behind in steady state; pacing holds it there."""
    max_lag: int
    ratio: float
    shared_memory_bytes: int
    """Slots, lanes and control."""
    policy_board_bytes: int | None = None
    """Shared memory for the published policy; known when the learner has built the network."""
    sum_boards_bytes: int | None = None
    """And for the actors' sums of gradients, where they are gathered."""
    source: Literal["rule", "measured"] = "rule"
    """Where the shares of the machine come from."""
    prediction: Prediction | None = None
    """Only of a measured plan."""
    notes: tuple[str, ...]
    """What was derived and why, in words."""

    @property
    def steps_per_unroll(self) -> int:
        return self.unroll_length * self.envs_per_actor
