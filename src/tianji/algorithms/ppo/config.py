"""The settings of PPO."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from pydantic import Field

from tianji.algorithms.actor_critic import settings
from tianji.config.schema import SEARCHED_ENTROPY, Count, Fraction, Positive, TriedCount


class PPOConfig(settings.ActorCriticConfig):
    """Proximal policy optimisation (Schulman et al. 2017) with a decoupled objective."""

    searched: ClassVar[Mapping[str, tuple[float, ...]]] = MappingProxyType(
        {**settings.ActorCriticConfig.searched, **SEARCHED_ENTROPY}
    )

    name: str = "ppo"
    learning_rate: Positive = 5e-4
    """Learning rate of the optimiser at the start."""
    unroll_length: TriedCount = 256
    """Steps of every environment in one unroll; longer unrolls mean fewer hand-overs and more lag.
    auto: the shortest at full speed."""
    unrolls_per_batch: Count = 1
    """Unrolls of every environment in one batch. Advantages are estimated across them, so that two
    short unrolls give the batch of a long one with less lag and less waiting."""
    learning_rate_final: float | None = Field(None, ge=0.0)
    """Learning rate at max_env_steps, reached linearly; none: it stays constant."""
    clip: Positive = 0.2
    """Bound on the relative change of an action's probability in one version; beyond it the
    gradient is zero."""
    clip_final: Positive | None = None
    """Clip at max_env_steps, reached linearly; none: it stays constant."""
    gae_lambda: Fraction = 0.95
    """Lambda of generalised advantage estimation: 0 relies on the value network (bias), 1 on the
    rewards (variance)."""
    epochs: Count = 10
    """Passes over each batch; more passes learn more from it and move the policy further from the
    one that acted."""
    minibatch_size: TriedCount = 128
    """Steps in one update. A batch is divided into the fewest equal parts of at most this size.
    auto: the smallest at full speed."""
    entropy: float = Field(0.0, ge=0.0)
    """Weight of the entropy bonus; a large weight keeps the policy random."""
    value_loss: float = Field(0.5, ge=0.0)
    """Weight of the value loss, a squared error."""
    value_clip: Positive | None = None
    """Bound on the change of a value in one version; none: no bound."""
    target_kl: Positive | None = None
    """Skip the remaining epochs once the KL divergence of the policy exceeds this; none: never
    skip."""
    normalize_advantage: bool = True
    """Normalise the advantages of each batch to mean 0 and standard deviation 1."""
    decoupled: bool = True
    """Clip relative to the learner's policy when it took the batch, and weight each step by the
    probability of its action under that policy. If false, clip relative to the policy that
    acted."""
    max_behaviour_weight: Positive = 2.0
    """Largest such weight; with 1 no step counts more than once."""
