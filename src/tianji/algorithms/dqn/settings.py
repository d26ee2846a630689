"""The settings that algorithms with Q values share."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tianji.config.schema import (
    AlgorithmConfig,
    Count,
    Fraction,
    Positive,
    PositiveFraction,
    TriedCount,
)


class QLearningConfig(AlgorithmConfig):
    """Deep Q-learning: what the network learns, from which memory, and how actors explore."""

    learning_rate: Positive = 5e-4
    """Learning rate of the optimiser at the start."""
    learning_rate_final: float | None = Field(None, ge=0.0)
    """Learning rate at max_env_steps, reached linearly; none: it stays constant."""
    unroll_length: TriedCount = 4
    """Steps of every environment in one unroll; one unroll of every actor makes one version. auto:
    the shortest at full speed."""
    max_grad_norm: Positive = 10.0
    """Largest global norm of a gradient; larger gradients are scaled down."""
    batch_size: TriedCount = 128
    """Transitions in one update. auto: the smallest number at full speed."""
    replay_size: Count = 100_000
    """Capacity of the replay store, in steps."""
    warmup_steps: Count = 1000
    """Steps collected before the first update."""
    n_step: Count = 2
    """Rewards summed before bootstrapping; more rewards propagate faster, but are more off-
    policy."""
    double: bool = True
    """Choose the next action with the online network and evaluate it with the target network."""
    dueling: bool = False
    """Use separate networks for the value of the state and the advantages of the actions."""
    loss: Literal["huber", "mse"] = "huber"
    """Loss of the TD errors; the Huber loss is linear for large errors."""
    target_period_updates: Count = 500
    """Updates between two copies of the online network to the target network. Setting it turns
    target_tau off."""
    exploration: Literal["decay", "ladder"] = "decay"
    """decay: all environments act at random less and less (epsilon_start, epsilon_final); ladder:
    each has a fixed fraction of its own (ladder_epsilon, ladder_alpha), without decay."""
    epsilon_start: Fraction = 1.0
    """Fraction of random actions at the start."""
    epsilon_final: Fraction = 0.05
    """Fraction of random actions from epsilon_decay_steps on."""
    epsilon_decay_steps: Count = 20_000
    """Environment steps over which the fraction of random actions falls linearly."""
    epsilon_hold: Count = 1
    """Steps of an unroll for which a random action goes on; at most unroll_length counts. Long ones
    get further from where an episode starts; the fraction of random actions stays."""
    ladder_epsilon: PositiveFraction = 0.4
    """Fraction of random actions of the environment that explores most. Environment i of N has
    ladder_epsilon^(1 + ladder_alpha * i / (N - 1)), counted over all actors."""
    ladder_alpha: float = Field(7.0, ge=0.0)
    """How much less the environment at the other end of the ladder explores; 0: all alike."""

    @property
    def actors_give_priorities(self) -> bool:
        """Return whether actors compute the first priorities."""
        return False
