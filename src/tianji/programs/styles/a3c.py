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
from tianji.programs.one_learner import with_one_learner
from tianji.programs.style import Given, Style, of_family, unless_given, with_algorithm
from tianji.programs.styles import tianji

NAME = "a3c"
NO_POLICY = "A3C's settings are carried over from those of PPO."


def settings(values: Values, given: Given) -> Values:
    """Compute gradients in the actors. PPO's optimiser, rates, weights and advantages are kept; an
    unroll is as long as A3C's, because each is used for one update."""
    if values[ALGORITHM_NAME] != NAME:
        of_family(NAME, values, PPOConfig, NO_POLICY, "ppo or a3c")
        why = "its actors compute gradients of the actor-critic loss."
        values = with_algorithm(NAME, values, given, NAME, why)
        values.pop(f"{ALGORITHM}.unroll_length")
        values |= {f"{ALGORITHM}.optimizer": "adam"}
        values = unless_given(values, given, **A3CConfig.run_defaults)
    no_steps = {"normalize.observations": False, "normalize.rewards": False}
    return with_one_learner(NAME, values, given, **no_steps)


STYLE = Style(
    name=NAME,
    about="Actors compute actor-critic gradients, and the learner applies each when it arrives.",
    settings=settings,
    program=tianji.program,
    differences=(
        "Loss: advantage actor-critic, one update for each unroll of one actor, nothing clipped.",
        "Correction: none; a gradient is applied to newer parameters as it is.",
        "Pacing: an actor waits until its gradient was applied, before it begins the next; the lag "
        "is the number of gradients that others apply meanwhile.",
    ),
)
