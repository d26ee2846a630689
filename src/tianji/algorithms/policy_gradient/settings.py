"""The settings of algorithms that gather policy gradients; each uses those that apply to it."""

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
