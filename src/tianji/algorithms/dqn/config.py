"""The settings of DQN."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from tianji.algorithms.dqn import settings
from tianji.config.schema import SEARCHED_TAU, FilledCount, Fraction


class DQNConfig(settings.QLearningConfig):
    """Deep Q-learning (Mnih et al. 2015) with double targets, dueling streams, n-step returns."""

    searched: ClassVar[Mapping[str, tuple[float, ...]]] = MappingProxyType(
        {**settings.QLearningConfig.searched, **SEARCHED_TAU}
    )

    name: str = "dqn"
    updates_per_version: FilledCount = 8
    """Updates for one unroll of every actor. A transition is used updates_per_version * batch_size
    / (num_envs * unroll_length) times on average; more learns faster until it overfits. auto: as
    many as the learner has time for while the actors work."""
    replay_on: Literal["host", "gpu", "auto"] = "auto"
    """Memory of the observations in the replay store. gpu: nothing is uploaded for a batch, but a
    learner that is restarted fills the store again. auto: on the GPU that the learner trains on, if
    there is one and they fit."""
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
    target_tau: float | None = Field(0.005, gt=0.0, le=1.0)
    """Fraction of the way that the target network moves to the online network in each update."""

    @property
    def actors_give_priorities(self) -> bool:
        return self.sampling == "prioritized" and self.initial_priorities == "actors"

    @model_validator(mode="before")
    @classmethod
    def _choose_target(cls, asked: Any) -> Any:
        """Turn target_tau off if only target_period_updates was set."""
        is_copied = isinstance(asked, Mapping) and "target_period_updates" in asked
        return {"target_tau": None, **asked} if is_copied else asked
