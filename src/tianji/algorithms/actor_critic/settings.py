"""What a person can ask of PPO and IMPALA alike."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from tianji.config.schema import AlgorithmConfig, Count, Positive


class ActorCriticConfig(AlgorithmConfig):
    """Algorithms that learn from whole unrolls."""

    run_defaults: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {"normalize.observations": True, "normalize.rewards": True}
    )

    pool_batches: Count = 1
    """1 uses every unroll once (P = 1); k draws a batch's unrolls at random from those of the
    newest k batches (P = 1/k), which are older."""
    max_grad_norm: Positive = 0.5
    """Gradients are scaled down to this global norm."""
