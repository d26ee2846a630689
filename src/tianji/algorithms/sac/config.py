"""The settings of SAC."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal

from pydantic import Field

from tianji.config.schema import (
    SEARCHED_TAU,
    AlgorithmConfig,
    Auto,
    Count,
    Positive,
    PositiveFraction,
    TriedCount,
)


class SACConfig(AlgorithmConfig):
    """Soft actor-critic (Haarnoja et al. 2018b) with twin critics and an automatic temperature."""

    run_defaults: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {"model.hidden": (256, 256), "model.activation": "relu"}
    )
    searched: ClassVar[Mapping[str, tuple[float, ...]]] = MappingProxyType(
        {**AlgorithmConfig.searched, **SEARCHED_TAU}
    )

    name: str = "sac"
    learning_rate: Positive = 3e-4
    """Learning rate of policy, critics and temperature at the start."""
    learning_rate_final: float | None = Field(None, ge=0.0)
    """Learning rate at max_env_steps, reached linearly; none: it stays constant."""
    unroll_length: TriedCount = 4
    """Steps of every environment in one unroll; one unroll of every actor makes one version. auto:
    the shortest at full speed."""
    batch_size: TriedCount = 256
    """Transitions in one update. auto: the smallest number at full speed."""
    updates_per_version: Count | None = None
    """Updates for one unroll of every actor; none: one for each of its num_envs * unroll_length
    steps. Fewer are faster and learn less from each step."""
    replay_size: Count = 300_000
    """Capacity of the replay store, in steps."""
    replay_on: Literal["host", "gpu", "auto"] = "auto"
    """Memory of the observations in the replay store. gpu: nothing is uploaded for a batch, but a
    learner that is restarted fills the store again. auto: on the GPU that the learner trains on, if
    there is one and they fit."""
    warmup_steps: Count = 1000
    """Steps collected before the first update; their actions are drawn uniformly."""
    warmup_hold: Count = 1
    """Steps of an unroll for which an action of the warm-up is held; at most unroll_length counts.
    Held actions get further from where an episode starts."""
    n_step: Count = 1
    """Rewards summed before bootstrapping; more rewards propagate faster, but are more off-
    policy."""
    target_tau: PositiveFraction = 0.005
    """Fraction of the way that the target critics move to the critics in each update."""
    target_entropy: float | Auto = "auto"
    """Entropy of the policy that the temperature aims at, of actions in [-1, 1]. auto: minus the
    numbers in an action."""
    initial_temperature: Positive | Auto = "auto"
    """Weight of the entropy against the rewards at the start. auto: 1."""

    def num_updates(self, num_envs: int) -> int:
        """Return the updates of one version."""
        return self.updates_per_version or num_envs * self.unroll_length
