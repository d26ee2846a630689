"""The settings of Rennala NIGT."""

from __future__ import annotations

from tianji.algorithms.policy_gradient import settings


class RennalaNigtConfig(settings.MomentumConfig, settings.CountedConfig):
    """Rennala NIGT: the first m gradients of a version, whichever actors they come from, and a
    normalised step along their momentum. It is for actors with the same task."""

    name: str = "rennala-nigt"
