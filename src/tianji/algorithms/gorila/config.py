"""The settings of Gorila."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from tianji.algorithms.dqn import settings
from tianji.config.schema import Count


class GorilaConfig(settings.QLearningConfig):
    """Gorila DQN (Nair et al. 2015): every actor has a replay memory and a target network of its
    own and computes gradients from them, and each gradient is applied when it arrives."""

    run_defaults: ClassVar[Mapping[str, Any]] = MappingProxyType({"max_lag": 100})

    name: str = "gorila"
    unroll_length: Count = 4
    """Steps of every environment of an actor between two of its gradients."""
    batch_size: Count = 32
    """Transitions in one gradient. A transition is used batch_size / (unroll_length * environments
    of an actor) times on average."""
    replay_size: Count = 100_000
    """Capacity of the replay memories of all actors together, in steps; each has its share."""
    warmup_steps: Count = 1000
    """Steps of all actors together before their first gradients; each waits for its share."""
    target_period_updates: Count = 500
    """Versions between two copies of the network that an actor has read to its target network."""
