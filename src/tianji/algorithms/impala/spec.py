"""IMPALA's record. Acting and networks are those of algorithms/actor_critic. No torch at import."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tianji.algorithms.actor_critic.record import (
    build_acting,
    build_model,
    build_value,
    cadence,
    export,
    fields,
)
from tianji.algorithms.actor_critic.record import check as check_spaces
from tianji.algorithms.impala.config import ImpalaConfig
from tianji.algorithms.interface import Algorithm, Update
from tianji.envs.interface import Spaces
from tianji.errors import UsageError

if TYPE_CHECKING:
    import torch

    from tianji.config.run import RunConfig


def check(spaces: Spaces, config: RunConfig) -> None:
    assert isinstance(config.algorithm, ImpalaConfig)
    check_spaces(spaces, config)
    if config.algorithm.minibatches > config.num_envs:
        raise UsageError(
            f"minibatches {config.algorithm.minibatches} is more than num_envs {config.num_envs}: "
            "a batch is cut along its environments. Lower minibatches or raise num_envs."
        )


def build_update(model: torch.nn.Module, spaces: Spaces, config: RunConfig) -> Update:
    from tianji.algorithms.impala import update

    return update.build_update(model, spaces, config)


ALGORITHM = Algorithm(
    name="impala",
    config=ImpalaConfig,
    cadence=cadence,
    check=check,
    fields=fields,
    build_model=build_model,
    build_acting=build_acting,
    build_update=build_update,
    export=export,
    build_value=build_value,
)
