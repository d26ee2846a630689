"""The settings of synchronous NIGT."""

from __future__ import annotations

from tianji.algorithms.policy_gradient import settings


class SyncNigtConfig(settings.MomentumConfig, settings.WaitingConfig):
    """Synchronous NIGT: one gradient of every actor, waiting for the slowest, and a normalised
    step along their momentum. It is the reference for the others."""

    name: str = "sync-nigt"
