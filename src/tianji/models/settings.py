"""Settings of networks that contradict each other. No torch in here: planning needs it."""

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
