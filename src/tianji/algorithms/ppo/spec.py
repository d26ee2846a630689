"""PPO's record. Acting and networks are those of algorithms/actor_critic. No torch at import."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tianji.algorithms.actor_critic.record import build_acting, build_model, cadence, export, fields
from tianji.algorithms.actor_critic.record import check as check_spaces
from tianji.algorithms.interface import Algorithm, Update
from tianji.algorithms.ppo.config import PPOConfig
from tianji.envs.interface import Spaces
from tianji.errors import UsageError

if TYPE_CHECKING:
    import torch

    from tianji.config.run import RunConfig


def check(spaces: Spaces, config: RunConfig) -> None:
    assert isinstance(config.algorithm, PPOConfig)
    check_spaces(spaces, config)
    num_rows = config.num_envs * config.algorithm.unroll_length
    if config.algorithm.minibatch_size > num_rows:
        raise UsageError(
            f"minibatch_size {config.algorithm.minibatch_size} is larger than a batch: num_envs "
            f"{config.num_envs} * unroll_length {config.algorithm.unroll_length} = {num_rows} "
            f"steps. Set minibatch_size to at most {num_rows}, or raise one of the others."
        )


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
)
