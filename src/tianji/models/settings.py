"""Checks of contradicting settings of networks. Planning imports it, so no torch."""

from __future__ import annotations

from tianji.config.run import RunConfig
from tianji.errors import UsageError


def check_model(config: RunConfig) -> None:
    if config.model.factory is not None and config.normalize.observations:
        raise UsageError(
            "normalize.observations works with TianJi's own networks, and model.factory is "
            f"'{config.model.factory}'. Set normalize.observations to false and normalise inside "
            "your network, or leave model.factory empty."
        )
