"""PPO's record. Acting and networks are those of algorithms/actor_critic. No torch at import."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tianji.algorithms.actor_critic import record
from tianji.algorithms.actor_critic.record import (
    build_acting,
    build_model,
    build_value,
    check,
    export,
    fields,
)
from tianji.algorithms.interface import Algorithm, QueueCadence, Update
from tianji.algorithms.ppo.config import PPOConfig
from tianji.envs.interface import Spaces

if TYPE_CHECKING:
    import torch

    from tianji.config.run import RunConfig


def cadence(config: RunConfig) -> QueueCadence:
    assert isinstance(config.algorithm, PPOConfig)
    return record.cadence(config, config.algorithm.epochs)


def build_update(model: torch.nn.Module, spaces: Spaces, config: RunConfig) -> Update:
    from tianji.algorithms.ppo import update

    return update.build_update(model, spaces, config)


ALGORITHM = Algorithm(
    name="ppo",
    config=PPOConfig,
    cadence=cadence,
    check=check,
    fields=fields,
    build_model=build_model,
    build_acting=build_acting,
    build_update=build_update,
    export=export,
    build_value=build_value,
)
