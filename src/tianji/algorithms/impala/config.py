"""What a person can ask of IMPALA."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tianji.algorithms.actor_critic import settings
from tianji.config.schema import Count, Fraction, Positive, TriedCount


class ImpalaConfig(settings.ActorCriticConfig):
    """Importance-weighted actor-learner architecture with V-trace (Espeholt et al. 2018).

    All losses are means over the steps of an update; the paper's are sums.
    """

    name: str = "impala"
    learning_rate: Positive = 1e-3
    """Step size of the optimiser at the start."""
    learning_rate_final: float | None = Field(None, ge=0.0)
    """Step size at max_env_steps, reached in a straight line; empty keeps it constant."""
    unroll_length: TriedCount = 20
    """Steps of every environment in one unroll; longer means fewer hand-overs and more lag. auto:
    the shortest that costs no speed."""
    minibatches: Count = 1
    """Updates per batch: the environments are cut into this many parts, each used once."""
    entropy: float = Field(0.01, ge=0.0)
    """Weight of the entropy bonus; too much keeps the policy random."""
    value_loss: float = Field(0.5, ge=0.0)
    """Weight of half the squared error of the values."""
    trace_lambda: Fraction = 1.0
    """Length of the traces: 0 looks one step ahead, 1 to the end of the unroll."""
    clip_rho: Positive = 1.0
    """Largest importance weight in a value target; it sets which policy's values are learnt."""
    clip_c: Positive = 1.0
    """Largest importance weight in a trace; it sets how fast, at the cost of variance."""
    clip_pg_rho: Positive = 1.0
    """Largest importance weight in the policy's gradient."""
    optimizer: Literal["adam", "rmsprop"] = "adam"
    """`rmsprop` is the paper's."""
    optimizer_epsilon: Positive = 1e-5
    """Added to the deviation that gradients are divided by; the paper has 0.1 with rmsprop."""
    rmsprop_decay: Fraction = 0.99
    """How slowly rmsprop forgets; not used by adam."""
