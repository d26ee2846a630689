"""The records of the algorithms that gather gradients. They differ in when a round is closed (rule)
and in the step that follows. Imports no torch: the supervisor reads it."""

from __future__ import annotations

from functools import partial

from tianji.algorithms.gathering import check_normalize, num_actors
from tianji.algorithms.interface import Algorithm, Gather, Rule
from tianji.algorithms.policy_gradient.config import (
    AFedPgConfig,
    CountedConfig,
    MaleniaNigtConfig,
    PolicyGradientConfig,
    ReducedConfig,
    RennalaNigtConfig,
    RennalaPgConfig,
    SyncNigtConfig,
    WaitingConfig,
)
from tianji.algorithms.registry import later
from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces
from tianji.errors import UsageError
from tianji.models.actions import squashed_layout
from tianji.models.sizes import check_model
from tianji.types import Field


def cadence(config: RunConfig, rule: Rule, note: str = "") -> Gather:
    """Make one version for every closed round. The steps of a round are those of its gradients;
    more may be in work when it closes."""
    algorithm = config.algorithm
    assert isinstance(algorithm, PolicyGradientConfig)
    m = algorithm.m if isinstance(algorithm, CountedConfig) else 1
    m_init = algorithm.m_init if isinstance(algorithm, CountedConfig) else None
    gradients = num_actors(config) if rule == "barrier" else m
    steps = gradients * algorithm.unroll_length * (config.num_envs // num_actors(config))
    return Gather(
        rule=rule,
        num_gradients=m,
        first_num_gradients=m_init or m,
        realisation=algorithm.realisation if isinstance(algorithm, ReducedConfig) else "server",
        absent_after_s=algorithm.absent_after_s if isinstance(algorithm, WaitingConfig) else None,
        unroll_length=algorithm.unroll_length,
        steps_per_version=steps,
        note=note,
    )


def fields(spaces: Spaces, config: RunConfig) -> tuple[Field, ...]:
    """Return the action alone: its log-probability is computed with the gradient."""
    return (squashed_layout(spaces.action).field,)


def check(spaces: Spaces, config: RunConfig) -> None:
    """Raise UsageError for spaces and settings that cannot work."""
    algorithm = config.algorithm
    assert isinstance(algorithm, PolicyGradientConfig)
    squashed_layout(spaces.action)
    check_model(spaces, config)
    check_normalize(config)
    known_actors = 1 if config.num_actors == "auto" else config.num_actors
    if algorithm.baseline == "peers" and config.num_envs < 2 * known_actors:
        most = config.num_envs // 2
        fewer = f", lower num_actors to at most {most}" if most else ""
        raise UsageError(
            "baseline 'peers' compares the environments of an actor with each other: it needs two "
            f"or more for each, and num_envs is {config.num_envs} with num_actors "
            f"{config.num_actors}. Raise num_envs{fewer}, or set baseline to none."
        )


def gathering(config: type[PolicyGradientConfig], rule: Rule, note: str = "") -> Algorithm:
    """Return the record of an algorithm."""
    return Algorithm(
        name=config.model_fields["name"].default,
        config=config,
        cadence=partial(cadence, rule=rule, note=note),
        check=check,
        fields=fields,
        build_model=later("policy_gradient.model", "build_model"),
        build_acting=later("actor_critic.policy", "StochasticActing"),
        build_update=later("policy_gradient.update", "build_update"),
        export=later("actor_critic.model", "export"),
        build_estimator=later("policy_gradient.estimator", "build_estimator"),
    )


RENNALA_NIGT = gathering(RennalaNigtConfig, "first")
MALENIA_NIGT = gathering(MaleniaNigtConfig, "harmonic")
SYNC_NIGT = gathering(SyncNigtConfig, "barrier")
AFEDPG = gathering(AFedPgConfig, "every", note="AFedPG in our reconstruction")
RENNALA_PG = gathering(RennalaPgConfig, "first")
