"""What a person can ask of synchronous NIGT."""

from __future__ import annotations

from tianji.algorithms.policy_gradient import settings


class SyncNigtConfig(settings.MomentumConfig, settings.WaitingConfig):
    """Synchronous NIGT: one gradient of every actor, waiting for the slowest, and a normalised
    step along their momentum. What the others are compared with."""

    name: str = "sync-nigt"
