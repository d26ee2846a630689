"""GALA (Assran et al. 2019): groups of actors and a learner that gossip along a ring.

    group 0 --(parameters)--> group 1 --(parameters)--> ... --(parameters)--> group 0

Every group trains by itself. After each update it mixes its parameters with the newest of the group
before it, if those are there; no group waits for another one. programs/groups.py has the wires.
"""

from __future__ import annotations

from tianji.config.values import Values
from tianji.programs.style import Given, Style, fix, refusal
from tianji.programs.styles import tianji

GROUPS = 2
"""Groups of a run that does not say how many."""


def settings(values: Values, given: Given) -> Values:
    """Divide the environments among groups that gossip after every update."""
    values = fix("gala", values, given, "its groups gossip.", combine="gossip")
    if "combine_every" not in given:
        values = {**values, "combine_every": 1}
    if values["num_groups"] > 1:
        return values
    if "num_groups" in given:
        raise refusal("gala", values, "num_groups", "one group has nobody to gossip with.", GROUPS)
    return {**values, "num_groups": GROUPS, "num_envs": _share(values, given)}


def _share(values: Values, given: Given) -> int:
    """Return the environments of one group: the run has as many as before, unless they do not
    divide evenly or the person gave those of one group."""
    num_envs: int = values["num_envs"]
    return num_envs if "num_envs" in given or num_envs % GROUPS else num_envs // GROUPS


STYLE = Style(
    name="gala",
    about="Several groups train by themselves and mix their parameters along a ring.",
    settings=settings,
    program=tianji.program,
    differences=(
        "Groups: each has a learner, a buffer and an equal share of the environments.",
        "Optimiser: each group has its own; only parameters are mixed.",
        "Pacing: that of tianji in every group; groups do not wait for each other.",
    ),
)
