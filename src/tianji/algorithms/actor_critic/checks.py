"""What the supervisor asks about PPO and IMPALA; no torch in here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tianji.envs.interface import Spaces
from tianji.envs.spaces import observation_leaves
from tianji.errors import UsageError
from tianji.models.actions import action_layout
from tianji.types import Field

if TYPE_CHECKING:
    from tianji.config.run import RunConfig


def fields(spaces: Spaces) -> tuple[Field, ...]:
    """The action, and its log-probability under the policy that acted."""
    return (action_layout(spaces.action).field, Field("log_prob", "float32"))


def check_spaces(spaces: Spaces, config: RunConfig) -> None:
    """Raise UsageError for spaces that no network of ours takes."""
    observation_leaves(spaces.observation)
    action_layout(spaces.action)
    check_model(config)


def check_model(config: RunConfig) -> None:
    """Raise UsageError for settings that contradict each other."""
    if config.model.factory is not None and config.normalize.observations:
        raise UsageError(
            f"normalize.observations works with TianJi's own networks, and model.factory is "
            f"'{config.model.factory}'. Set normalize.observations to false and normalise inside "
            "your network, or leave model.factory empty."
        )
