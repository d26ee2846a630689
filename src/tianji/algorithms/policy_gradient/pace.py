"""Step size and momentum as the settings have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tianji.algorithms.policy_gradient.settings import MomentumConfig, PolicyGradientConfig
from tianji.ops.nigt import Pace

if TYPE_CHECKING:
    from tianji.config.run import RunConfig


def pace(config: RunConfig) -> Pace:
    """Where there is no momentum, the new gradient is all of it."""
    algorithm = config.algorithm
    assert isinstance(algorithm, PolicyGradientConfig)
    eta = algorithm.eta if isinstance(algorithm, MomentumConfig) else 1.0
    return Pace(algorithm.learning_rate, eta, algorithm.schedule)
