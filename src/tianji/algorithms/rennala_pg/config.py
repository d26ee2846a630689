"""What a person can ask of Rennala PG."""

from __future__ import annotations

from tianji.algorithms.policy_gradient import settings
from tianji.config.schema import Positive


class RennalaPgConfig(settings.CountedConfig):
    """Rennala PG: the first m gradients of a version, and a plain step along their mean. What
    remains of Rennala NIGT without momentum, look-ahead and normalisation."""

    name: str = "rennala-pg"
    learning_rate: Positive = 0.02
    """What the mean gradient is multiplied by at every version (alpha): the length of the step is
    that times its norm."""
