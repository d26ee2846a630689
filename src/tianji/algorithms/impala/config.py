"""The settings of IMPALA."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Literal

from pydantic import Field

from tianji.algorithms.actor_critic import settings
from tianji.config.schema import SEARCHED_ENTROPY, Count, Fraction, Positive, TriedCount


class ImpalaConfig(settings.ActorCriticConfig):
    """Importance-weighted actor-learner architecture with V-trace (Espeholt et al. 2018).

    All losses are means over the steps of an update; the paper's are sums.
    """

    searched: ClassVar[Mapping[str, tuple[float, ...]]] = MappingProxyType(
        {**settings.ActorCriticConfig.searched, **SEARCHED_ENTROPY}
    )

    name: str = "impala"
    learning_rate: Positive = 1e-3
    """Learning rate of the optimiser at the start."""
    learning_rate_final: float | None = Field(None, ge=0.0)
    """Learning rate at max_env_steps, reached linearly; none: it stays constant."""
    unroll_length: TriedCount = 20
    """Steps of every environment in one unroll; longer unrolls mean fewer hand-overs and more lag.
    auto: the shortest at full speed."""
    minibatches: Count = 1
    """Updates per batch: the environments are divided into this many parts, and each part is used
    once."""
    entropy: float = Field(0.01, ge=0.0)
    """Weight of the entropy bonus; a large weight keeps the policy random."""
    value_loss: float = Field(0.5, ge=0.0)
    """Weight of the value loss, half a squared error."""
    trace_lambda: Fraction = 1.0
    """Length of the traces: with 0, targets look one step ahead; with 1, to the end of the
    unroll."""
    correction: Literal["v-trace", "none"] = "v-trace"
    """Correction for the lag of the actors. none: the loss takes all steps for those of the present
    policy, as if every importance weight were 1."""
    clip_rho: Positive = 1.0
    """Largest importance weight in a value target; it determines which policy's values are
    learnt."""
    clip_c: Positive = 1.0
    """Largest importance weight in a trace; larger values learn faster with more variance."""
    clip_pg_rho: Positive = 1.0
    """Largest importance weight in the policy gradient."""
    optimizer: Literal["adam", "rmsprop"] = "adam"
    """The optimiser; the paper uses `rmsprop`."""
    optimizer_epsilon: Positive = 1e-5
    """Epsilon in the optimiser's denominator; the paper uses 0.1 with rmsprop."""
    rmsprop_decay: Fraction = 0.99
    """Decay of rmsprop's mean square gradient; not used by adam."""

    @property
    def corrects_lag(self) -> bool:
        """Return whether importance weights count."""
        return self.correction == "v-trace"
