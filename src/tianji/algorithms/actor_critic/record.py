"""What the records of PPO and IMPALA share. No torch at import: the supervisor reads this."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tianji.algorithms.actor_critic.settings import ActorCriticConfig
from tianji.algorithms.interface import Acting, QueueCadence, ValueFunction
from tianji.envs.interface import Spaces
from tianji.envs.spaces import observation_leaves
from tianji.models.actions import action_layout
from tianji.models.settings import check_model
from tianji.types import Field

if TYPE_CHECKING:
    import torch

    from tianji.config.run import RunConfig


def cadence(config: RunConfig, epochs: int = 1) -> QueueCadence:
    """One version for every round of all environments, trained on so many times."""
    assert isinstance(config.algorithm, ActorCriticConfig)
    length = config.algorithm.unroll_length
    pool_batches = config.algorithm.pool_batches
    steps = config.num_envs * length
    return QueueCadence(
        unroll_length=length,
        steps_per_version=steps,
        pool_batches=pool_batches,
        trained_steps_per_version=epochs * steps,
    )


def fields(spaces: Spaces, config: RunConfig) -> tuple[Field, ...]:
    """The action, and its log-probability under the policy that acted."""
    return (action_layout(spaces.action).field, Field("log_prob", "float32"))


def check(spaces: Spaces, config: RunConfig) -> None:
    """Raise UsageError for spaces and settings that no network of ours can work with."""
    observation_leaves(spaces.observation)
    action_layout(spaces.action)
    check_model(config)


def build_model(spaces: Spaces, config: RunConfig) -> torch.nn.Module:
    from tianji.algorithms.actor_critic import model

    return model.build_model(spaces, config)


def build_acting(model: torch.nn.Module, spaces: Spaces, config: RunConfig) -> Acting:
    from tianji.algorithms.actor_critic import policy

    return policy.build_acting(model, spaces, config)


def build_value(
    model: torch.nn.Module, spaces: Spaces, config: RunConfig, state: Mapping[str, torch.Tensor]
) -> ValueFunction:
    from tianji.algorithms.actor_critic import policy

    return policy.build_value(model, spaces, config, state)


def export(model: torch.nn.Module, spaces: Spaces, config: RunConfig) -> Any:
    from tianji.algorithms.actor_critic import model as networks

    return networks.export(model, spaces, config)
