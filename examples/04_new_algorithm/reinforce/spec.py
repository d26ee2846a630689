"""REINFORCE's record: what TianJi asks of an algorithm, in one place.

The supervisor imports this file, so torch is imported only inside of functions.
"""

from __future__ import annotations

from gymnasium.spaces import Box, Discrete

from reinforce.config import ReinforceConfig
from tianji.algorithms.actor_critic.record import build_model, export, fields
from tianji.algorithms.interface import Algorithm, QueueCadence
from tianji.errors import UsageError


def cadence(config) -> QueueCadence:
    """One version for every round of all environments, each item used once."""
    length = config.algorithm.unroll_length
    steps = config.num_envs * length
    return QueueCadence(
        unroll_length=length,
        steps_per_version=steps,
        trained_steps_per_version=steps,
    )


def check(spaces, config) -> None:
    if not (isinstance(spaces.observation, Box) and isinstance(spaces.action, Discrete)):
        raise UsageError("REINFORCE needs a Box to observe and a Discrete action. Use ppo instead.")
    if config.normalize.observations or config.normalize.rewards:
        raise UsageError("REINFORCE does not normalise. Set normalize.* to false, or use ppo.")


def build_acting(model, spaces, config):
    from reinforce.policy import build_acting

    return build_acting(model, spaces, config)


def build_update(model, spaces, config):
    from reinforce.update import ReinforceUpdate

    return ReinforceUpdate(model, config)


ALGORITHM = Algorithm(
    name="reinforce",
    config=ReinforceConfig,
    cadence=cadence,
    check=check,
    fields=fields,
    build_model=build_model,
    build_acting=build_acting,
    build_update=build_update,
    export=export,
)
