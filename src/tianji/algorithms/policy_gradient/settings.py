"""What a person can ask of the algorithms that gather policy gradients. Each takes the parts that
mean something for it."""

from __future__ import annotations

from typing import Literal

from tianji.config.schema import AlgorithmConfig, Count, Positive, PositiveFraction


class PolicyGradientConfig(AlgorithmConfig):
    """Actors that compute gradients, and a learner that takes steps with them."""

    learning_rate: Positive = 0.02
    """Length of the step that the parameters take at every version (alpha)."""
    schedule: Literal["constant", "decaying"] = "constant"
    """`decaying`: at version t, counted from 1, the step is multiplied by 2 / (t + 2), and eta,
    where there is one, by (2 / (t + 2))^(4/5)."""
    unroll_length: Count = 200
    """Steps of every environment in one gradient (the horizon H): what comes later does not count
    in the objective."""
    estimate: Literal["steps", "episodes"] = "steps"
    """When a gradient is done. `steps`: after unroll_length steps, always, so that all take
    equally many; the first episode counts, the rest is let go. `episodes`: when the first episode
    has ended, sooner where it is short, so that short episodes come first and count too often
    wherever actors race in real time."""
    baseline: Literal["none", "peers"] = "none"
    """What is taken off returns to steady the gradient without moving its mean. `peers`: the mean
    of the actor's other environments at the same step; it needs at least two of them."""


class MomentumConfig(PolicyGradientConfig):
    """Normalised steps along a momentum, with gradients taken at a look-ahead point."""

    eta: PositiveFraction = 0.1
    """Weight of the new gradient in the momentum: 1 forgets all before. Gradients are taken
    (1 - eta) / eta times the last step ahead."""


class ReducedConfig(PolicyGradientConfig):
    """Rounds, at the end of which all contributions are added up."""

    realisation: Literal["server", "all-reduce"] = "server"
    """Where a round's gradients are added up. `server`: at the learner, which publishes the next
    parameters; `all-reduce`: among the actors, each of which takes the step itself."""


class CountedConfig(ReducedConfig):
    """Rounds that are closed by a number of gradients."""

    m: Count = 20
    """Gradients of a version (M): more of them steady the step and make it wait longer."""
    m_init: Count | None = None
    """Gradients of the first version (M_init); empty: as many as of the others."""


class WaitingConfig(ReducedConfig):
    """Rounds that need a gradient of every actor."""

    absent_after_s: Positive | None = None
    """Go on without an actor that has delivered nothing for so many seconds, until it does again;
    empty: wait for it."""
