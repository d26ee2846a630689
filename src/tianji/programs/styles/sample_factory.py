"""Sample Factory's sampling (Petrenko et al. 2020): two groups of environments in each process.

    actors 0 and 1 of a worker: one steps its environments while a server infers for the other
    actor --(rows)--> inference <--(policy)-- learner
    actor --(experience)--> buffer --(batches)--> learner

This hides inference behind simulation where it takes no longer than stepping half of the
environments.
"""

from __future__ import annotations

import math

from tianji.config.values import Values
from tianji.programs.style import Given, Style, fix, refusal, unless_given
from tianji.programs.styles import tianji

SPLITS = 2
"""Groups of environments in a process."""
ACTORS_PER_WORKER = "plan.actors_per_worker"


def settings(values: Values, given: Given) -> Values:
    """Let a server infer, for two actors in every process."""
    why = "one half of a process's environments steps while a server infers for the other half."
    values = fix("sample-factory", values, given, why, inference="served")
    values = unless_given(values, given, **{ACTORS_PER_WORKER: SPLITS})
    each = values[ACTORS_PER_WORKER]
    if each == "auto" or each < SPLITS:
        raise refusal("sample-factory", values, ACTORS_PER_WORKER, why, SPLITS)
    num_actors = values["num_actors"]
    if num_actors != "auto" and num_actors % each:
        whole = each * math.ceil(num_actors / each)
        raise refusal("sample-factory", values, "num_actors", why, whole)
    return values


STYLE = Style(
    name="sample-factory",
    about="Two actors take turns in each process: one steps while a server infers for the other.",
    settings=settings,
    program=tianji.program,
    differences=(
        "Inference: a server for all actors; two actors in each process take turns.",
        "Loss, correction and pacing: those of tianji, not those of Sample Factory's APPO.",
    ),
)
