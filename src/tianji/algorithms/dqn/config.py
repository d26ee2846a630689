"""What a person can ask of DQN."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from tianji.config.schema import (
    AlgorithmConfig,
    Count,
    FilledCount,
    Fraction,
    Positive,
    TriedCount,
)


class DQNConfig(AlgorithmConfig):
    """Deep Q-learning (Mnih et al. 2015) with double targets, dueling streams, n-step returns."""

    name: str = "dqn"
    learning_rate: Positive = 5e-4
    """Step size of the optimiser at the start."""
    learning_rate_final: float | None = Field(None, ge=0.0)
    """Step size at max_env_steps, reached in a straight line; empty keeps it constant."""
    unroll_length: TriedCount = 4
    """Steps of every environment in one unroll; a version is made for every round of unrolls. auto:
    the shortest that costs no speed."""
    max_grad_norm: Positive = 10.0
    """Gradients are scaled down to this global norm."""
    batch_size: TriedCount = 128
    """Transitions of one update. auto: the smallest that costs no speed."""
    updates_per_version: FilledCount = 8
    """Updates for every round of unrolls. Times batch_size, divided by num_envs * unroll_length:
    how often a transition is used on average; more learns faster until it overfits. auto: as many
    as the learner has time for while the actors work."""
    replay_size: Count = 100_000
    """Steps kept to sample from."""
    warmup_steps: Count = 1000
    """Steps collected before the first update."""
    n_step: Count = 2
    """Rewards summed before bootstrapping; more spread reward faster, and less on-policy."""
    double: bool = True
    """Choose the next action by the online network, value it by the target network."""
    dueling: bool = False
    """Separate networks for the state's value and the actions' advantages."""
    loss: Literal["huber", "mse"] = "huber"
    """Huber grows only linearly for large errors."""
    target_period_updates: Count = 500
    """Updates between copies of the online network to the target. Setting it turns target_tau
    off."""
    target_tau: float | None = Field(0.005, gt=0.0, le=1.0)
    """Move the target this share of the way to the online network in every update."""
    epsilon_start: Fraction = 1.0
    """Share of random actions at the start."""
    epsilon_final: Fraction = 0.05
    """Share of random actions from epsilon_decay_steps on."""
    epsilon_decay_steps: Count = 20_000
    """Environment steps over which the share falls in a straight line."""

    @model_validator(mode="before")
    @classmethod
    def _choose_target(cls, asked: Any) -> Any:
        """Copy the target every so many updates where only that was asked for."""
        is_copied = isinstance(asked, Mapping) and "target_period_updates" in asked
        return {"target_tau": None, **asked} if is_copied else asked
