"""Gorila's record. Networks, acting and loss are those of DQN. No torch at import: the supervisor
reads this."""

from __future__ import annotations

from dataclasses import replace

from tianji.algorithms.dqn.spec import ALGORITHM as DQN
from tianji.algorithms.dqn.spec import check as check_q_learning
from tianji.algorithms.gathering import check_normalize, num_actors
from tianji.algorithms.gorila.config import GorilaConfig
from tianji.algorithms.interface import Gather, OwnReplay
from tianji.algorithms.registry import later
from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces


def cadence(config: RunConfig) -> Gather:
    """Make one version of every gradient, of a sample from the actor's own memory."""
    algorithm = config.algorithm
    assert isinstance(algorithm, GorilaConfig)
    return Gather(
        rule="every",
        unroll_length=algorithm.unroll_length,
        steps_per_version=algorithm.unroll_length * (config.num_envs // num_actors(config)),
        fresh=False,
        max_lag=config.max_lag,
        memory=OwnReplay(
            capacity_steps=algorithm.replay_size,
            warmup_steps=algorithm.warmup_steps,
            batch_size=algorithm.batch_size,
            n_step=algorithm.n_step,
        ),
    )


def check(spaces: Spaces, config: RunConfig) -> None:
    """Raise UsageError for spaces and settings that cannot work."""
    check_normalize(config)
    check_q_learning(spaces, config)


ALGORITHM = replace(
    DQN,
    name="gorila",
    config=GorilaConfig,
    cadence=cadence,
    check=check,
    build_update=later("gorila.update", "build_update"),
    adds_gradients=False,
    build_estimator=later("gorila.estimator", "QEstimator"),
)
