"""The common part of the records of PPO, IMPALA and A3C. Imports no torch: the supervisor reads it.

ALGORITHM = actor_critic(name="ppo", config=PPOConfig, cadence=cadence, ...)
"""

from __future__ import annotations

from functools import partial

from tianji.algorithms.actor_critic.settings import ActorCriticConfig
from tianji.algorithms.interface import Algorithm, QueueCadence
from tianji.algorithms.registry import later
from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces
from tianji.errors import UsageError
from tianji.models.actions import Choices, action_layout
from tianji.models.sizes import check_model, state_size
from tianji.types import MEMORY, NEXT_MEMORY, Field


def cadence(config: RunConfig, epochs: int = 1, rounds: int = 1) -> QueueCadence:
    """Make one version for every so many rounds of all environments, from `epochs` passes over
    them."""
    assert isinstance(config.algorithm, ActorCriticConfig)
    length = config.algorithm.unroll_length
    pool_batches = config.algorithm.pool_batches
    steps = config.num_envs * length * rounds
    return QueueCadence(
        unroll_length=length,
        steps_per_version=steps,
        pool_batches=pool_batches,
        trained_steps_per_version=epochs * steps,
    )


def fields(spaces: Spaces, config: RunConfig) -> tuple[Field, ...]:
    """Return the action, its log-probability under the policy that acted, and the states of a
    memory."""
    size = state_size(spaces, config)
    memory = (Field(name, "float32", (size,), "unroll") for name in (MEMORY, NEXT_MEMORY) if size)
    return (action_layout(spaces.action).field, Field("log_prob", "float32"), *memory)


def check(spaces: Spaces, config: RunConfig) -> None:
    """Raise UsageError for spaces and settings that no network of ours can work with."""
    layout = action_layout(spaces.action)
    check_model(spaces, config)
    color = config.algorithm.noise_color if isinstance(config.algorithm, ActorCriticConfig) else 0.0
    if color and isinstance(layout, Choices):
        raise UsageError(
            f"noise_color is {color:g}, and the actions of this environment are choices, which "
            "have no noise that could be coloured. Use --noise-color 0; it is meant for continuous "
            "actions."
        )


def check_with_memory(spaces: Spaces, config: RunConfig) -> None:
    """Raise UsageError likewise, and for settings with which a memory cannot learn."""
    assert isinstance(config.algorithm, ActorCriticConfig)
    check(spaces, config)
    burn_in, length = config.algorithm.burn_in, config.algorithm.unroll_length
    if burn_in and config.model.memory == "none":
        raise UsageError(
            f"burn_in is {burn_in}, and there is no memory whose state it could refresh. Use "
            "--burn-in 0, or --model.memory gru or lstm."
        )
    if burn_in >= length:
        raise UsageError(
            f"burn_in is {burn_in}, and unrolls have {length} steps: none would be left to train "
            f"on. Use a burn_in below {length}, or a longer --unroll-length."
        )


build_model = later("actor_critic.model", "build_model")
build_acting = later("actor_critic.policy", "StochasticActing")
build_value = later("actor_critic.policy", "build_value")
export = later("actor_critic.model", "export")
actor_critic = partial(
    Algorithm,
    fields=fields,
    build_model=build_model,
    build_acting=build_acting,
    export=export,
    build_value=build_value,
)
"""Makes the record of an algorithm whose networks and acting are those of this folder."""
