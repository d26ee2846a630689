"""The settings of DQN."""

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
    PositiveFraction,
    TriedCount,
)


class DQNConfig(AlgorithmConfig):
    """Deep Q-learning (Mnih et al. 2015) with double targets, dueling streams, n-step returns."""

    name: str = "dqn"
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
    updates_per_version: FilledCount = 8
    """Updates for one unroll of every actor. A transition is used updates_per_version * batch_size
    / (num_envs * unroll_length) times on average; more learns faster until it overfits. auto: as
    many as the learner has time for while the actors work."""
    replay_size: Count = 100_000
    """Capacity of the replay store, in steps."""
    replay_on: Literal["host", "gpu", "auto"] = "auto"
    """Memory of the observations in the replay store. gpu: nothing is uploaded for a batch, but a
    learner that is restarted fills the store again. auto: on the GPU that the learner trains on, if
    there is one and they fit."""
    warmup_steps: Count = 1000
    """Steps collected before the first update."""
    sampling: Literal["uniform", "prioritized"] = "uniform"
    """How transitions are drawn from the replay store: all alike, or by their last TD errors
    (Schaul et al. 2016)."""
    priority_exponent: Fraction = 0.6
    """How strongly TD errors count in prioritised sampling; 0: all alike."""
    importance_exponent: Fraction = 0.4
    """How far the loss corrects for prioritised sampling; 1: wholly."""
    initial_priorities: Literal["highest", "actors"] = "highest"
    """Priority of a transition that was not drawn yet, with prioritised sampling. highest: the
    highest so far; actors: its TD error by the Q values of the actor that made it."""
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
    target_tau: float | None = Field(0.005, gt=0.0, le=1.0)
    """Fraction of the way that the target network moves to the online network in each update."""
    exploration: Literal["decay", "ladder"] = "decay"
    """decay: all environments act at random less and less (epsilon_start, epsilon_final); ladder:
    each has a fixed fraction of its own (ladder_epsilon, ladder_alpha), without decay."""
    epsilon_start: Fraction = 1.0
    """Fraction of random actions at the start."""
    epsilon_final: Fraction = 0.05
    """Fraction of random actions from epsilon_decay_steps on."""
    epsilon_decay_steps: Count = 20_000
    """Environment steps over which the fraction of random actions falls linearly."""
    ladder_epsilon: PositiveFraction = 0.4
    """Fraction of random actions of the environment that explores most. Environment i of N has
    ladder_epsilon^(1 + ladder_alpha * i / (N - 1)), counted over all actors."""
    ladder_alpha: float = Field(7.0, ge=0.0)
    """How much less the environment at the other end of the ladder explores; 0: all alike."""

    @property
    def actors_give_priorities(self) -> bool:
        """Return whether actors compute the first priorities."""
        return self.sampling == "prioritized" and self.initial_priorities == "actors"

    @model_validator(mode="before")
    @classmethod
    def _choose_target(cls, asked: Any) -> Any:
        """Turn target_tau off if only target_period_updates was set."""
        is_copied = isinstance(asked, Mapping) and "target_period_updates" in asked
        return {"target_tau": None, **asked} if is_copied else asked
