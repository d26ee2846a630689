"""PPO's record. Acting and networks are those of algorithms/actor_critic."""

from __future__ import annotations

from dataclasses import replace

from tianji.algorithms.actor_critic import record
from tianji.algorithms.interface import QueueCadence
from tianji.algorithms.ppo.config import PPOConfig
from tianji.algorithms.registry import later
from tianji.config.run import RunConfig


def cadence(config: RunConfig) -> QueueCadence:
    assert isinstance(config.algorithm, PPOConfig)
    made = record.cadence(config, config.algorithm.epochs, config.algorithm.unrolls_per_batch)
    steps = min(config.algorithm.minibatch_size, made.steps_per_version)
    if config.model.memory != "none":  # minibatches are made of whole unrolls
        steps = max(steps, made.unroll_length)
    return replace(made, steps_per_update=steps)


ALGORITHM = record.actor_critic(
    name="ppo",
    config=PPOConfig,
    cadence=cadence,
    check=record.check_with_memory,
    build_update=later("ppo.update", "PPOUpdate"),
    adds_gradients=True,
    remembers=True,
)
