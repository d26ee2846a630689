"""SAC's record. No torch at import: the supervisor reads this."""

from __future__ import annotations

from gymnasium import spaces as gym_spaces

from tianji.algorithms.interface import Algorithm, LearnerSize, ReplayCadence
from tianji.algorithms.registry import later
from tianji.algorithms.replay_checks import check_replay
from tianji.algorithms.sac.config import SACConfig
from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces
from tianji.errors import UsageError
from tianji.models.actions import squashed_layout
from tianji.models.sizes import check_model, critic_parameters, hidden_widths
from tianji.types import Field

NUM_CRITICS = 2


def cadence(config: RunConfig) -> ReplayCadence:
    """Make one version, of several updates, for every round of all environments."""
    assert isinstance(config.algorithm, SACConfig)
    algorithm = config.algorithm
    num_updates = algorithm.num_updates(config.num_envs)
    return ReplayCadence(
        unroll_length=algorithm.unroll_length,
        lookahead=algorithm.n_step,
        steps_per_version=config.num_envs * algorithm.unroll_length,
        warmup_steps=algorithm.warmup_steps,
        capacity_steps=algorithm.replay_size,
        memory=algorithm.replay_on,
        num_updates=num_updates,
        trained_steps_per_version=num_updates * algorithm.batch_size,
    )


def check(spaces: Spaces, config: RunConfig) -> None:
    assert isinstance(config.algorithm, SACConfig)
    check_model(spaces, config)
    if not isinstance(spaces.action, gym_spaces.Box):
        raise UsageError(
            f"SAC needs a Box action space of real numbers, and this environment's is "
            f"{spaces.action}. Use dqn for one choice, or ppo or impala for any."
        )
    squashed_layout(spaces.action)
    check_replay(config, "SAC", config.algorithm.replay_size, config.algorithm.warmup_steps)
    if not hidden_widths(spaces, config):
        raise UsageError(
            "model.hidden has no layers, and a critic without hidden layers rates an action alike "
            "in all states. Set model.hidden to 256,256."
        )


def fields(spaces: Spaces, config: RunConfig) -> tuple[Field, ...]:
    """Return the action in the scale of the environment."""
    return (squashed_layout(spaces.action).field,)


def learner_size(spaces: Spaces, config: RunConfig) -> LearnerSize:
    """Count the critics and the temperature. The losses pass through the critics for the actions
    that were taken and for those of the policy, and through the policy."""
    num_parameters = critic_parameters(spaces, config, NUM_CRITICS) + 1
    return LearnerSize(num_parameters, num_passes=3, keeps_float32=True)


ALGORITHM = Algorithm(
    name="sac",
    config=SACConfig,
    cadence=cadence,
    check=check,
    fields=fields,
    build_model=later("sac.model", "build_model"),
    build_acting=later("sac.policy", "SACActing"),
    build_update=later("sac.update", "SACUpdate"),
    export=later("actor_critic.model", "export"),
    not_mixed="groups mix what they publish, and SAC publishes its policy without the critics.",
    learner_size=learner_size,
)
