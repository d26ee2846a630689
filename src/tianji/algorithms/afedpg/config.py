"""What a person can ask of AFedPG."""

from __future__ import annotations

from tianji.algorithms.policy_gradient import settings


class AFedPgConfig(settings.MomentumConfig):
    """AFedPG (our reconstruction): every gradient that arrives makes a version; the actor that
    sends it mixes it into the momentum that it received, however old that is by then."""

    name: str = "afedpg"
