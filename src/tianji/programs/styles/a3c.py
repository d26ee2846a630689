"""A3C (Mnih et al. 2016): actors compute gradients, and each is applied when it arrives.

    actor --(gradient, token)--> buffer --(one gradient)--> learner --(policy)--> actor

An actor reads the policy, acts for an unroll, and sends the gradient of the actor-critic loss of
it. Its environments go on from unroll to unroll. The learner takes a step with every gradient,
however old, so that nobody waits for a batch.
"""

from __future__ import annotations

from tianji.algorithms.a3c.config import A3CConfig
from tianji.algorithms.ppo.config import PPOConfig
from tianji.config.schema import ALGORITHM
from tianji.config.settings import ALGORITHM_NAME
from tianji.config.values import Values
from tianji.programs.style import Given, Style, fix, of_family, with_algorithm
from tianji.programs.styles import tianji

NAME = "a3c"
NO_POLICY = "A3C's settings are carried over from those of PPO."
NO_STEPS = "its learner sees gradients and no steps, so that it has nothing to normalise by."
ONE_LEARNER = "one learner applies the gradients of all actors."
EVERY_GRADIENT = (
    "each gradient makes a version when it arrives, so that there is no queue or ratio to hold."
)


def settings(values: Values, given: Given) -> Values:
    """Compute gradients in the actors. PPO's optimiser, rates, weights and advantages are kept; an
    unroll is as long as A3C's, because each is used for one update."""
    if values[ALGORITHM_NAME] != NAME:
        of_family(NAME, values, PPOConfig, NO_POLICY, "ppo or a3c")
        why = "its actors compute gradients of the actor-critic loss."
        values = with_algorithm(NAME, values, given, NAME, why)
        values.pop(f"{ALGORITHM}.unroll_length")
        values |= {f"{ALGORITHM}.optimizer": "adam"}
        if "max_lag" not in given:
            values |= A3CConfig.run_defaults
    no = {"normalize.observations": False, "normalize.rewards": False}
    values = fix(NAME, values, given, NO_STEPS, **no)
    return with_one_learner(NAME, values, given)


def with_one_learner(style: str, values: Values, given: Given) -> Values:
    """Return the settings with one learner, which applies every gradient when it arrives."""
    held = {"balance": "paced", "lag_target": "auto"}
    values = fix(style, values, given, EVERY_GRADIENT, **held)
    return fix(style, values, given, ONE_LEARNER, num_groups=1, learners_per_group=1)


STYLE = Style(
    name=NAME,
    about="Actors compute actor-critic gradients, and the learner applies each when it arrives.",
    settings=settings,
    program=tianji.program,
    differences=(
        "Loss: advantage actor-critic, one update for each unroll of one actor, nothing clipped.",
        "Correction: none; a gradient is applied to newer parameters as it is.",
        "Pacing: none; the lag is the number of gradients that others apply meanwhile.",
    ),
)
