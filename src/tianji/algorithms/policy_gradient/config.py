"""The settings of algorithms that gather policy gradients: what several share, then each one."""

from __future__ import annotations

from typing import Literal

from tianji.config.schema import AlgorithmConfig, Count, Positive, PositiveFraction


class PolicyGradientConfig(AlgorithmConfig):
    """Actors that compute gradients, and a learner that takes steps with them."""

    learning_rate: Positive = 0.02
    """Length of the step of the parameters at every version (alpha)."""
    schedule: Literal["constant", "decaying"] = "constant"
    """`decaying`: at version t, counted from 1, the step is multiplied by 2 / (t + 2), and eta, if
    there is one, by (2 / (t + 2))^(4/5)."""
    unroll_length: Count = 200
    """Steps of every environment in one gradient (the horizon H); later rewards are not part of the
    objective."""
    estimate: Literal["steps", "episodes"] = "steps"
    """When a gradient is complete. `steps`: after unroll_length steps, so that all gradients take
    equally many; the first episode counts, the rest is dropped. `episodes`: when the first episode
    has ended. Short episodes then finish first and count too often if actors race in real time."""
    baseline: Literal["none", "peers"] = "none"
    """Baseline that is subtracted from returns; it reduces the variance of the gradient without
    changing its mean. `peers`: the mean of the actor's other environments at the same step; it
    needs at least two environments."""


class MomentumConfig(PolicyGradientConfig):
    """Normalised steps along a momentum, with gradients taken at a look-ahead point."""

    eta: PositiveFraction = 0.1
    """Weight of the new gradient in the momentum; 1 means no momentum. Gradients are taken at a
    point (1 - eta) / eta times the last step ahead."""


class ReducedConfig(PolicyGradientConfig):
    """Rounds, at the end of which all contributions are added up."""

    realisation: Literal["server", "all-reduce"] = "server"
    """Where the gradients of a round are added up. `server`: by the learner, which publishes the
    next parameters; `all-reduce`: by the actors, each of which takes the step itself."""


class CountedConfig(ReducedConfig):
    """Rounds that are closed by a number of gradients."""

    m: Count = 20
    """Gradients in one version (M); more gradients mean a less noisy step and a longer wait."""
    m_init: Count | None = None
    """Gradients in the first version (M_init); none: the same as m."""


class WaitingConfig(ReducedConfig):
    """Rounds that need a gradient of every actor."""

    absent_after_s: Positive | None = None
    """Seconds without a delivery after which a round continues without an actor, until it delivers
    again; none: always wait for it."""


class RennalaNigtConfig(MomentumConfig, CountedConfig):
    """Rennala NIGT: the first m gradients of a version, whichever actors they come from, and a
    normalised step along their momentum. It is for actors with the same task."""

    name: str = "rennala-nigt"


class MaleniaNigtConfig(MomentumConfig, CountedConfig, WaitingConfig):
    """Malenia NIGT: the mean of the actors' own means, once their harmonic count is m / n each,
    and a normalised step along its momentum. It is for actors with different tasks."""

    name: str = "malenia-nigt"


class SyncNigtConfig(MomentumConfig, WaitingConfig):
    """Synchronous NIGT: one gradient of every actor, waiting for the slowest, and a normalised
    step along their momentum. It is the reference for the others."""

    name: str = "sync-nigt"


class AFedPgConfig(MomentumConfig):
    """AFedPG (our reconstruction): every gradient that arrives makes a version. The actor mixes it
    into the momentum that it received, even if that is old by then."""

    # Our reconstruction of Lan et al. (2024) from what is known of it:
    #
    #     learner: theta_{k+1} = theta_k + alpha_k d / |d| for every d that arrives; publishes
    #              theta_{k+1}, its look-ahead point and d
    #     actor:   d = (1 - eta) d_received + eta g, with g sampled and taken at the look-ahead
    #              point that it received, which may be several versions old when d arrives
    #
    # The published sources leave open which coefficient the look-ahead has and how an actor comes
    # by the momentum; both are as in NIGT here.

    name: str = "afedpg"


class RennalaPgConfig(CountedConfig):
    """Rennala PG: the first m gradients of a version, and a plain step along their mean. It is
    Rennala NIGT without momentum, look-ahead and normalisation."""

    name: str = "rennala-pg"
    learning_rate: Positive = 0.02
    """Factor of the mean gradient in each version's step (alpha): the length of the step is this
    times the norm of the gradient."""
