"""What a person can ask of REINFORCE."""

from __future__ import annotations

from pydantic import Field

from tianji.config.schema import AlgorithmConfig


class ReinforceConfig(AlgorithmConfig):
    """REINFORCE with a learned baseline (Williams 1992).

    gamma, learning_rate and unroll_length come with AlgorithmConfig.
    """

    learning_rate: float = Field(1e-3, gt=0.0)
    """Step size of the optimiser."""
    max_grad_norm: float = Field(0.5, gt=0.0)
    """Gradients are scaled down to this global norm."""
    entropy: float = Field(0.01, ge=0.0)
    """Weight of the entropy bonus; too much keeps the policy random."""
