"""Gorila (Nair et al. 2015): actors with replay memories of their own send gradients.

    actor, its replay --(gradient, token)--> buffer --(one gradient)--> learner --(policy)--> actor

Every actor explores, keeps its own steps, samples from them, and computes the gradient with a
target network of its own. The learner takes a step with every gradient when it arrives. Experience
never leaves the actor; parameters and gradients do.
"""

from __future__ import annotations

from tianji.algorithms.dqn.config import DQNConfig
from tianji.algorithms.gorila.config import GorilaConfig
from tianji.config.schema import ALGORITHM
from tianji.config.settings import ALGORITHM_NAME
from tianji.config.values import Values
from tianji.programs.one_learner import with_one_learner
from tianji.programs.style import Given, Style, of_family, unless_given, with_algorithm
from tianji.programs.styles import tianji

NAME = "gorila"
Q_VALUES = "its actors learn Q values of discrete actions from memories of their own."
UPDATES, TAU = f"{ALGORITHM}.updates_per_version", f"{ALGORITHM}.target_tau"
PERIOD, LENGTH = f"{ALGORITHM}.target_period_updates", f"{ALGORITHM}.unroll_length"


def settings(values: Values, given: Given) -> Values:
    """Compute gradients in the actors, about as many for each step as DQN's learner makes
    updates."""
    if values[ALGORITHM_NAME] != NAME:
        of_family(NAME, values, DQNConfig, Q_VALUES, "dqn or gorila")
        why = "its actors sample from memories of their own."
        tau, changed = values[TAU], with_algorithm(NAME, values, given, NAME, why)
        num_actors = 1 if values["num_actors"] == "auto" else values["num_actors"]
        # A network that moves tau of the way is 1 / tau updates old, a copied one half its period.
        changed[PERIOD] = values[PERIOD] if tau is None else round(2 / tau)
        changed[LENGTH] = max(1, values[LENGTH] * num_actors // values[UPDATES])
        values = unless_given(changed, given, **GorilaConfig.run_defaults)
    return with_one_learner(NAME, values, given, **{"normalize.observations": False})


STYLE = Style(
    name=NAME,
    about="Actors compute DQN's gradients from their own replay; the learner applies each.",
    settings=settings,
    program=tianji.program,
    differences=(
        "Replay: one memory for each actor, which samples it; the learner has none.",
        "Ratio: one minibatch for each unroll of an actor. Where num_actors is auto and the plan "
        "has several actors, each step is used about that many times as often as by DQN.",
        "Loss: DQN's, with a target network in each actor, copied every so many versions.",
        "Pacing: an actor waits until its gradient was applied, before it begins the next; "
        "gradients older than max_lag versions are discarded.",
    ),
)
