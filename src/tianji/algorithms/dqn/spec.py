"""DQN's record. No torch at import: the supervisor reads this."""

from __future__ import annotations

from gymnasium import spaces as gym_spaces

from tianji.algorithms.dqn.config import DQNConfig
from tianji.algorithms.dqn.settings import QLearningConfig
from tianji.algorithms.interface import (
    Algorithm,
    Proportional,
    ReplayCadence,
)
from tianji.algorithms.registry import later
from tianji.algorithms.replay_checks import check_replay
from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces
from tianji.errors import UsageError
from tianji.models.actions import action_layout
from tianji.models.sizes import check_model
from tianji.types import PRIORITY, Field

Q_TAKEN, Q_BEST = "q_taken", "q_best"
PRIORITY_FIELDS = (Field(Q_TAKEN, "float32"), Field(Q_BEST, "float32"), Field(PRIORITY, "float32"))
"""Q(s, a) of the action that was taken, and max_a Q(s, a), from which actors compute priorities.
The next unroll repeats the last ones beside their rows."""


def cadence(config: RunConfig) -> ReplayCadence:
    """Make one version, of several updates, for every round of all environments."""
    assert isinstance(config.algorithm, DQNConfig)
    algorithm = config.algorithm
    steps = config.num_envs * algorithm.unroll_length
    sampled = algorithm.updates_per_version * algorithm.batch_size
    # The value of the row that the last item ends with is known one row later.
    further = 1 if algorithm.actors_give_priorities else 0
    return ReplayCadence(
        unroll_length=algorithm.unroll_length,
        lookahead=algorithm.n_step + further,
        n_step=algorithm.n_step,
        steps_per_version=steps,
        warmup_steps=algorithm.warmup_steps,
        capacity_steps=algorithm.replay_size,
        memory=algorithm.replay_on,
        sampling=_sampling(algorithm),
        num_updates=algorithm.updates_per_version,
        trained_steps_per_version=sampled,
    )


def _sampling(algorithm: DQNConfig) -> Proportional | None:
    if algorithm.sampling == "uniform":
        return None
    return Proportional(algorithm.priority_exponent, algorithm.importance_exponent)


def check(spaces: Spaces, config: RunConfig) -> None:
    """Raise UsageError for spaces and sizes that no algorithm with Q values can work with."""
    assert isinstance(config.algorithm, QLearningConfig)
    check_model(spaces, config)
    if not isinstance(spaces.action, gym_spaces.Discrete):
        raise UsageError(
            f"{config.algorithm.name} learns the value of each action and needs a Discrete action "
            f"space, and this environment's is {spaces.action}. Use ppo, impala, a3c or sac for "
            "it, or wrap the environment so that its actions are one choice."
        )
    if config.algorithm.dueling and config.model.factory is not None:
        raise UsageError(
            f"dueling is a shape of TianJi's own networks, and model.factory is "
            f"'{config.model.factory}'. Set dueling to false, and combine the two streams there."
        )
    algorithm = config.algorithm
    check_replay(config, algorithm.name, algorithm.replay_size, algorithm.warmup_steps)


def fields(spaces: Spaces, config: RunConfig) -> tuple[Field, ...]:
    assert isinstance(config.algorithm, QLearningConfig)
    more = PRIORITY_FIELDS if config.algorithm.actors_give_priorities else ()
    return (action_layout(spaces.action).field, *more)


ALGORITHM = Algorithm(
    name="dqn",
    config=DQNConfig,
    cadence=cadence,
    check=check,
    fields=fields,
    build_model=later("dqn.model", "build_model"),
    build_acting=later("dqn.policy", "EpsilonGreedyActing"),
    build_update=later("dqn.update", "DQNUpdate"),
    export=later("dqn.model", "export"),
    build_value=later("dqn.policy", "build_value"),
    adds_gradients=True,
)
