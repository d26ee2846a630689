"""The settings of Ape-X: those of DQN, with other defaults."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal

from tianji.algorithms.dqn import config
from tianji.config.schema import Count, Positive


class ApexConfig(config.DQNConfig):
    """Ape-X (Horgan et al. 2018): DQN with prioritised replay, whose actors compute the first
    priorities and explore each in its own way, and whose actors and learner never wait."""

    run_defaults: ClassVar[Mapping[str, Any]] = MappingProxyType({"balance": "free"})

    name: str = "apex"
    sampling: Literal["uniform", "prioritized"] = "prioritized"
    """How transitions are drawn from the replay store: all alike, or by their last TD errors
    (Schaul et al. 2016)."""
    initial_priorities: Literal["highest", "actors"] = "actors"
    """Priority of a transition that was not drawn yet, with prioritised sampling. highest: the
    highest so far; actors: its TD error by the Q values of the actor that made it."""
    exploration: Literal["decay", "ladder"] = "ladder"
    """decay: all environments act at random less and less (epsilon_start, epsilon_final); ladder:
    each has a fixed fraction of its own (ladder_epsilon, ladder_alpha), without decay."""
    n_step: Count = 3
    """Rewards summed before bootstrapping; more rewards propagate faster, but are more off-
    policy."""
    dueling: bool = True
    """Use separate networks for the value of the state and the advantages of the actions."""
    max_grad_norm: Positive = 40.0
    """Largest global norm of a gradient; larger gradients are scaled down."""
