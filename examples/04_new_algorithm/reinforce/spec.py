"""REINFORCE's record: what TianJi asks of an algorithm, in one place.

The supervisor imports this file, so torch is imported only inside of functions.
"""

from __future__ import annotations

from reinforce.config import ReinforceConfig
from tianji.algorithms.actor_critic.record import build_acting, build_model, check, export, fields
from tianji.algorithms.interface import Algorithm, Cadence


def cadence(config) -> Cadence:
    """One version for every round of all environments, each item used once."""
    length = config.algorithm.unroll_length
    return Cadence(
        unroll_length=length,
        lookahead=1,
        steps_per_version=config.num_envs * length,
        warmup_steps=0,
        store="queue",
        ratio=1.0,
    )


def build_update(model, spaces, config):
    from reinforce.update import ReinforceUpdate

    return ReinforceUpdate(model, spaces, config)


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
