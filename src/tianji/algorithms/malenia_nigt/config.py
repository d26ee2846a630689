"""The settings of Malenia NIGT."""

from __future__ import annotations

from tianji.algorithms.policy_gradient import settings


class MaleniaNigtConfig(settings.MomentumConfig, settings.CountedConfig, settings.WaitingConfig):
    """Malenia NIGT: the mean of the actors' own means, once their harmonic count is m / n each,
    and a normalised step along its momentum. It is for actors with different tasks."""

    name: str = "malenia-nigt"
