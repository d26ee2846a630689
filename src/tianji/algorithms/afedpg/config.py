"""The settings of AFedPG."""

from __future__ import annotations

from tianji.algorithms.policy_gradient import settings


class AFedPgConfig(settings.MomentumConfig):
    """AFedPG (our reconstruction): every gradient that arrives makes a version. The actor mixes it
    into the momentum that it received, even if that is old by then."""

    name: str = "afedpg"
