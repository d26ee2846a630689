"""What a person can ask of Rennala PG."""

from __future__ import annotations

from tianji.algorithms.policy_gradient import settings


class RennalaPgConfig(settings.CountedConfig):
    """Rennala PG: the first m gradients of a version, and a plain step along their mean. What
    remains of Rennala NIGT without momentum, look-ahead and normalisation."""

    name: str = "rennala-pg"
