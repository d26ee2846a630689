"""A3C's record. Acting and networks are those of algorithms/actor_critic."""

from __future__ import annotations

from tianji.algorithms.a3c.config import A3CConfig
from tianji.algorithms.actor_critic import record
from tianji.algorithms.gathering import check_normalize, num_actors
from tianji.algorithms.interface import Gather
from tianji.algorithms.registry import later
from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces


def cadence(config: RunConfig) -> Gather:
    """Make one version of every gradient; the episodes go on from one gradient to the next."""
    assert isinstance(config.algorithm, A3CConfig)
    length = config.algorithm.unroll_length
    return Gather(
        rule="every",
        unroll_length=length,
        steps_per_version=length * (config.num_envs // num_actors(config)),
        fresh=False,
        max_lag=config.max_lag,
    )


def check(spaces: Spaces, config: RunConfig) -> None:
    """Raise UsageError for spaces and settings that cannot work."""
    record.check(spaces, config)
    check_normalize(config)


ALGORITHM = record.actor_critic(
    name="a3c",
    config=A3CConfig,
    cadence=cadence,
    check=check,
    build_update=later("a3c.update", "build_update"),
    build_estimator=later("a3c.estimator", "ActorCriticEstimator"),
)
