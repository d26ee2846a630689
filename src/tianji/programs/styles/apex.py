"""Ape-X (Horgan et al. 2018): actors fill a prioritised replay store, and nobody waits.

    actor --(unrolls, first priorities)--> replay --(batches)--> learner --(policy)--> actor
                                           replay <--(priorities)-- learner

Every environment explores with a fixed share of random actions of its own. The learner draws what
it has most to learn from, and gives new priorities back. How often a transition is used depends on
the speeds of both sides.
"""

from __future__ import annotations

from tianji.algorithms.dqn.config import DQNConfig
from tianji.config.schema import ALGORITHM
from tianji.config.values import Values
from tianji.programs.style import Given, Style, fix, of_family, with_algorithm
from tianji.programs.styles import tianji

_OWN = ("sampling", "initial_priorities", "exploration")
"""Settings that make DQN Ape-X: these are not kept from the preset."""


def settings(values: Values, given: Given) -> Values:
    """Learn from a prioritised replay store, and let nobody wait."""
    why = "it learns Q values of discrete actions from one replay store."
    of_family("apex", values, DQNConfig, why, "dqn or apex")
    changed = with_algorithm("apex", values, given, "apex", "it draws by priority.")
    if changed is not values:
        own = {f"{ALGORITHM}.{name}" for name in _OWN}
        values = {path: value for path, value in changed.items() if path not in own}
    why = "neither its actors nor its learner wait."
    return fix("apex", values, given, why, balance="free", lag_target="auto")


STYLE = Style(
    name="apex",
    about="Actors fill a prioritised replay store and the learner draws from it; nobody waits.",
    settings=settings,
    program=tianji.program,
    differences=(
        "Loss: weighted by how often prioritised sampling draws a transition.",
        "Exploration: a fixed share of random actions for every environment, without decay.",
        "Pacing: none; ratio and lag depend on the speeds of actors and learner.",
    ),
)
