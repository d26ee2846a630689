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
from tianji.programs.program import Program, Role
from tianji.programs.style import Given, Style, fix
from tianji.programs.v_trace import with_v_trace


def settings(values: Values, given: Given) -> Values:
    """Learn with V-trace, let the learner's process infer, and make actors wait for the queue."""
    values = with_v_trace("seed", values, given)
    why = "its actors hold only environments, and a server infers for all of them."
    values = fix("seed", values, given, why, inference="served")
    why = "its pacing is a queue of fixed size, which makes actors wait when it is full."
    return fix("seed", values, given, why, balance="blocking")


def program(config: RunConfig, plan: RunPlan) -> Program:
    """Return actors without a policy, and a server of inference in the learner's process."""
    roles = (
        *parts.actors(plan),
        Role("inference", "inference", 0, "learner", thread=1),
        parts.buffer(config),
        parts.learner(),
        *parts.evaluators(config),
    )
    wires = (
        *parts.rows(roles),
        parts.experience(roles, plan.num_slots),
        *parts.training(roles),
        parts.policy(roles),
        *parts.control(roles),
    )
    return Program(roles, parts.workers(plan, roles), wires)


STYLE = Style(
    name="seed",
    about="The learner's process infers for all actors, which hold only environments.",
    settings=settings,
    program=program,
    differences=(
        "Inference: every row is a question to the learner's process and waits for its answer.",
        "Loss: V-trace, one pass over each unroll; the settings that PPO has too are kept.",
        "Correction: truncated importance weights; an unroll may hold several versions.",
        "Pacing: a bounded queue, which makes actors wait when it is full; max_lag bounds nothing.",
    ),
)
