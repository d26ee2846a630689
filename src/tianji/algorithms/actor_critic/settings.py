"""The settings that PPO and IMPALA share."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from pydantic import Field

from tianji.config.schema import AlgorithmConfig, Count, Positive


class ActorCriticConfig(AlgorithmConfig):
    """Algorithms that learn from whole unrolls."""

    run_defaults: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {"normalize.observations": True, "normalize.rewards": True}
    )

    pool_batches: Count = 1
    """With 1, every unroll is used once. With k, the unrolls of a batch are drawn at random from
    those of the newest k batches, so that they are older."""
    burn_in: int = Field(0, ge=0)
    """With a memory: steps at the start of an unroll that only refresh the state which the actor
    stored, and are left out of the loss; gradients of later steps flow back through them. Steps
    after a reset need none, and always count."""
    max_grad_norm: Positive = 0.5
    """Largest global norm of a gradient; larger gradients are scaled down."""
    noise_color: float = Field(0.0, ge=0.0, le=2.0)
    """How alike the noise of continuous actions is in successive steps of an unroll. 0: independent
    (white); 1: alike over all lengths (pink), which gets further from where an episode starts; 2: a
    slow drift (red)."""
