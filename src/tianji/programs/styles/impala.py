"""IMPALA (Espeholt et al. 2018): actors fill a bounded queue, and V-trace corrects their lag.

    actor --(bounded queue of unrolls)--> learner --(policy)--> actor

An actor starts an unroll when the queue has a free place for it, and waits when it has none: that
is back-pressure. Nothing bounds the lag but the size of the queue; V-trace weighs what is old.
"""

from __future__ import annotations

from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.config.values import Values
from tianji.programs import parts
from tianji.programs.program import Program
from tianji.programs.style import Given, Style, fix, refusal
from tianji.programs.v_trace import with_v_trace

OWN_POLICY = "its actors infer with their own copy of the policy."


def settings(values: Values, given: Given) -> Values:
    """Learn with V-trace, and let a full queue make actors wait."""
    values = with_v_trace("impala", values, given)
    if values["inference"] not in ("auto", "actor-cpu", "actor-gpu"):
        raise refusal("impala", values, "inference", OWN_POLICY, "actor-cpu")
    inference = "actor-cpu" if values["inference"] == "auto" else values["inference"]
    values |= {"inference": inference}
    why = "its pacing is a queue of fixed size, which makes actors wait when it is full."
    return fix("impala", values, given, why, balance="blocking")


def program(config: RunConfig, plan: RunPlan) -> Program:
    """Return actors with a policy of their own, and a learner behind a bounded queue."""
    roles = (
        *parts.actors(plan),
        parts.buffer(config),
        parts.learner(),
        *parts.evaluators(config),
    )
    wires = (
        parts.experience(roles, plan.num_slots),
        *parts.training(roles),
        parts.policy(roles),
        *parts.control(roles),
    )
    return Program(roles, parts.workers(plan, roles), wires)


STYLE = Style(
    name="impala",
    about="Actors fill a bounded queue and wait while it is full; V-trace corrects the lag.",
    settings=settings,
    program=program,
    differences=(
        "Loss: V-trace, one pass over each unroll; the settings that PPO has too are kept.",
        "Correction: truncated importance weights in targets and traces.",
        "Pacing: a bounded queue, which makes actors wait when it is full; max_lag bounds nothing.",
    ),
)
