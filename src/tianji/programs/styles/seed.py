"""SEED (Espeholt et al. 2020): inference at the learner; actors hold only environments.

    actor --(rows)--> inference (in the learner's process) <--(policy)-- learner
    actor --(experience)--> buffer --(batches)--> learner

An actor asks for the actions of every row and steps its environments with them. The server always
infers with the newest policy, so that an unroll may hold several versions: every row says which.
"""

from __future__ import annotations

from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.config.values import Values
from tianji.programs import parts
from tianji.programs.program import Program
from tianji.programs.style import Given, Style, fix
from tianji.programs.styles import tianji
from tianji.programs.v_trace import LOSS, PACING, with_v_trace

SERVED = "its actors hold only environments, and a server infers for all of them."


def settings(values: Values, given: Given) -> Values:
    """Learn with V-trace, let a full queue make actors wait, and let a server infer."""
    values = with_v_trace("seed", values, given)
    return fix("seed", values, given, SERVED, inference="served")


def program(config: RunConfig, plan: RunPlan) -> Program:
    """Return the program of tianji with its server in the learner's process, also on a CPU."""
    return parts.beside_learner(tianji.program(config, plan), plan, "inference", thread=1)


STYLE = Style(
    name="seed",
    about="The learner's process infers for all actors, which hold only environments.",
    settings=settings,
    program=program,
    differences=(
        "Inference: every row is an inference request to the learner's process, and waits.",
        LOSS,
        "Correction: truncated importance weights; an unroll may hold several versions.",
        PACING,
    ),
)
