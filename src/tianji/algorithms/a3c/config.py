"""The settings of A3C."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal

from pydantic import Field

from tianji.config.schema import SEARCHED_ENTROPY, AlgorithmConfig, Count, Fraction, Positive


class A3CConfig(AlgorithmConfig):
    """Asynchronous advantage actor-critic (Mnih et al. 2016): every actor computes gradients from
    its own unrolls, and each gradient is applied when it arrives."""

    run_defaults: ClassVar[Mapping[str, Any]] = MappingProxyType({"max_lag": 100})
    searched: ClassVar[Mapping[str, tuple[float, ...]]] = MappingProxyType(
        {**AlgorithmConfig.searched, **SEARCHED_ENTROPY}
    )

    name: str = "a3c"
    learning_rate: Positive = 7e-4
    """Learning rate of the optimiser at the start."""
    learning_rate_final: float | None = Field(None, ge=0.0)
    """Learning rate at max_env_steps, reached linearly; none: it stays constant."""
    unroll_length: Count = 20
    """Steps of every environment in one gradient. Longer unrolls look further ahead and make fewer
    versions."""
    gae_lambda: Fraction = 1.0
    """Lambda of generalised advantage estimation: 0 relies on the value network (bias), 1 on the
    rewards of the unroll (variance), as in the paper."""
    entropy: float = Field(0.01, ge=0.0)
    """Weight of the entropy bonus; a large weight keeps the policy random."""
    value_loss: float = Field(0.5, ge=0.0)
    """Weight of the value loss, a squared error."""
    max_grad_norm: Positive = 0.5
    """Largest global norm of a gradient; larger gradients are scaled down."""
    optimizer: Literal["adam", "rmsprop"] = "rmsprop"
    """The optimiser, whose statistics all actors share; the paper uses `rmsprop`."""
    optimizer_epsilon: Positive = 1e-5
    """Epsilon in the optimiser's denominator."""
    rmsprop_decay: Fraction = 0.99
    """Decay of rmsprop's mean square gradient; not used by adam."""
