"""GALA (Assran et al. 2019): groups of actors and a learner that gossip along a ring.

    group 0 --(parameters)--> group 1 --(parameters)--> ... --(parameters)--> group 0

Every group trains by itself. After each update it mixes its parameters with the newest of the group
before it, if those are there. A group that has made MAX_AGE versions without new ones waits for
them before its next batch. programs/groups.py has the wires.
"""

from __future__ import annotations

from tianji.algorithms.interface import QueueCadence, ReplayCadence
from tianji.config.overrides import STYLE as NAMED
from tianji.config.values import Values
from tianji.errors import UsageError
from tianji.programs.style import Given, Style, fix, learns_from, refusal
from tianji.programs.styles import tianji
from tianji.wording import counted

GROUPS = 2
"""Groups of a run that does not say how many."""
MAX_AGE = 100
"""Versions without new parameters after which a group waits. GALA counts updates of A2C, one for
each batch, as versions are. Groups that are about equally fast never wait."""


def settings(values: Values, given: Given) -> Values:
    """Divide the environments among groups that gossip after every update."""
    why = "one learner gathers the gradients of all actors, so that there is one group."
    learns_from("gala", values, QueueCadence, ReplayCadence, why=why)
    values = fix("gala", values, given, "its groups gossip.", combine="gossip")
    own = {"combine_every": 1, "combine_max_age": MAX_AGE}
    values = {**values, **{path: value for path, value in own.items() if path not in given}}
    if values["num_groups"] == 1 and "num_groups" in given:
        raise refusal("gala", values, "num_groups", "one group has nobody to gossip with.", GROUPS)
    values = {**values, "num_groups": max(GROUPS, values["num_groups"])}
    # A run that has its style already has the environments of one group.
    if NAMED not in given or "num_envs" in given:
        return values
    return {**values, "num_envs": _share(values, is_asked="num_groups" in given)}


def _share(values: Values, is_asked: bool) -> int:
    """Return the environments of one group: the run has as many as before, unless nobody asked for
    a number of groups and they cannot be divided.

    is_asked: the number of groups is the person's."""
    num_envs, num_groups = values["num_envs"], values["num_groups"]
    each, rest = divmod(num_envs, num_groups)
    if rest and is_asked:
        raise UsageError(
            f"style is 'gala', and {counted(num_envs, 'environment')} cannot be divided among "
            f"{num_groups} groups. Use --num-envs {max(1, each)}, which is the number of each "
            "group, or another --num-groups."
        )
    share: int = num_envs if rest else each
    return share


STYLE = Style(
    name="gala",
    about="Several groups train by themselves and mix their parameters along a ring.",
    settings=settings,
    program=tianji.program,
    differences=(
        "Groups: each has a learner, a buffer and an equal share of the environments.",
        "Optimiser: each group has its own; only parameters are mixed.",
        "Pacing: that of tianji in every group; one waits only where its peer's state is too old.",
    ),
)
