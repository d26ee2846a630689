"""GALA (Assran et al. 2019): groups of actors and a learner that gossip along a ring.

    group 0 --(parameters)--> group 1 --(parameters)--> ... --(parameters)--> group 0

Every group trains by itself. After each update it mixes its parameters with the newest of the group
before it, if those are there. A group that has made MAX_AGE versions without new ones waits for
them before its next batch. programs/groups.py has the wires.
"""

from __future__ import annotations

from tianji.algorithms.interface import QueueCadence, ReplayCadence
from tianji.algorithms.registry import load_algorithm
from tianji.config.settings import ALGORITHM_NAME
from tianji.config.values import Values
from tianji.programs.style import (
    Given,
    Style,
    fix,
    learns_from,
    refusal,
    unless_given,
    wrong_algorithm,
)
from tianji.programs.styles import tianji

NAME = "gala"
GROUPS = 2
"""Groups of a run that does not say how many."""
MAX_AGE = 100
"""Versions without new parameters after which a group waits. GALA counts updates of A2C, one for
each batch, as versions are. Groups that are about equally fast never wait."""
ONE_GROUP = "one group has nobody to gossip with."


def settings(values: Values, given: Given) -> Values:
    """Let groups gossip after every update. Groups that this style brings share the environments,
    if these divide evenly; those that somebody asked for have num_envs each, as in every style."""
    why = "one learner gathers the gradients of all actors, so that there is one group."
    learns_from(NAME, values, QueueCadence, ReplayCadence, why=why)
    if why_not := load_algorithm(values[ALGORITHM_NAME]).not_mixed:
        raise wrong_algorithm(NAME, values, why_not, "ppo or dqn")
    values = fix(NAME, values, given, "its groups gossip.", combine="gossip")
    values = unless_given(values, given, combine_every=1, combine_max_age=MAX_AGE)
    if values["num_groups"] > 1:
        return values
    if "num_groups" in given:
        raise refusal(NAME, values, "num_groups", ONE_GROUP, GROUPS)
    num_envs, rest = divmod(values["num_envs"], GROUPS)
    shared = {} if rest else {"num_envs": num_envs}
    return unless_given({**values, "num_groups": GROUPS}, given, **shared)


STYLE = Style(
    name=NAME,
    about="Several groups train by themselves and mix their parameters along a ring.",
    settings=settings,
    program=tianji.program,
    differences=(
        "Groups: each has a learner, a buffer, and num_envs environments of its own.",
        "Optimiser: each group has its own; only parameters are mixed.",
        "Pacing: that of tianji in every group; one waits only where its peer's state is too old.",
    ),
)
