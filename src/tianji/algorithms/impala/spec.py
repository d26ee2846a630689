"""IMPALA's record. Acting and networks are those of algorithms/actor_critic."""

from __future__ import annotations

import math
from dataclasses import replace

from tianji.algorithms.actor_critic import record
from tianji.algorithms.impala.config import ImpalaConfig
from tianji.algorithms.interface import QueueCadence
from tianji.algorithms.registry import later
from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces
from tianji.errors import UsageError


def cadence(config: RunConfig) -> QueueCadence:
    assert isinstance(config.algorithm, ImpalaConfig)
    made = record.cadence(config)
    steps = math.ceil(made.steps_per_version / config.algorithm.minibatches)
    return replace(made, steps_per_update=steps)


def check(spaces: Spaces, config: RunConfig) -> None:
    assert isinstance(config.algorithm, ImpalaConfig)
    record.check_with_memory(spaces, config)
    if config.algorithm.minibatches > config.num_envs:
        raise UsageError(
            f"minibatches {config.algorithm.minibatches} is more than num_envs {config.num_envs}: "
            "a batch is cut along its environments. Lower minibatches or raise num_envs."
        )


ALGORITHM = record.actor_critic(
    name="impala",
    config=ImpalaConfig,
    cadence=cadence,
    check=check,
    build_update=later("impala.update", "ImpalaUpdate"),
    adds_gradients=True,
    remembers=True,
)
