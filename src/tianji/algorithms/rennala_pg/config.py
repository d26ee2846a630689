"""The settings of Rennala PG."""

from __future__ import annotations

from tianji.algorithms.policy_gradient import settings
from tianji.config.schema import Positive


class RennalaPgConfig(settings.CountedConfig):
    """Rennala PG: the first m gradients of a version, and a plain step along their mean. It is
    Rennala NIGT without momentum, look-ahead and normalisation."""

    name: str = "rennala-pg"
    learning_rate: Positive = 0.02
    """Factor of the mean gradient in each version's step (alpha): the length of the step is this
    times the norm of the gradient."""
