"""Serial: one process, in which acting and learning take turns.

    actors, then buffer and learner, then actors again: one worker, one thread

Every item is made by the newest policy, so the lag is 0. This is the reference that the other
styles are compared with.
"""

from __future__ import annotations

from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.config.values import Values
from tianji.programs import parts
from tianji.programs.program import Program
from tianji.programs.style import Given, Style, fix
from tianji.programs.styles import tianji

WHY = "one process acts and learns in turn, so that nothing is asynchronous."


def settings(values: Values, given: Given) -> Values:
    """Run in one process without lag."""
    return fix(
        "serial", values, given, WHY,
        engine="inline", max_lag=0, lag_target="auto", balance="paced", num_groups=1,
        learners_per_group=1, actor_hosts=0,
    )  # fmt: skip


def program(config: RunConfig, plan: RunPlan) -> Program:
    """Return the program of tianji with all roles in one worker."""
    apart = tianji.program(config, plan)
    kinds = (role.kind for role in apart.roles)
    return parts.beside_learner(apart, plan, *kinds, thread=0)


STYLE = Style(
    name="serial",
    about="One process acts and learns in turn: nothing is asynchronous, and the lag is 0.",
    settings=settings,
    program=program,
    differences=(
        "Pacing: none is needed; actors work only while the learner has nothing to do.",
        "Lag: always 0, so that no correction has anything to correct.",
    ),
)
