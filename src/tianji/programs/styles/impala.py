"""IMPALA (Espeholt et al. 2018): actors fill a bounded queue, and V-trace corrects their lag.

    actor --(bounded queue of unrolls)--> learner --(policy)--> actor

An actor starts an unroll when the queue has a free place for it, and waits when it has none: that
is back-pressure. Nothing bounds the lag but the size of the queue; V-trace weighs what is old. The
roles and wires are those of tianji: actors, each with a policy of its own, buffer and learner.
"""

from __future__ import annotations

from tianji.config.values import Values
from tianji.programs.style import Given, Style, refusal
from tianji.programs.styles import tianji
from tianji.programs.v_trace import LOSS, PACING, with_v_trace

OWN_POLICY = "its actors infer with their own copy of the policy."


def settings(values: Values, given: Given) -> Values:
    """Learn with V-trace, let a full queue make actors wait, and give each actor the policy."""
    values = with_v_trace("impala", values, given)
    if values["inference"] not in ("auto", "actor-cpu", "actor-gpu"):
        raise refusal("impala", values, "inference", OWN_POLICY, "actor-cpu")
    inference = "actor-cpu" if values["inference"] == "auto" else values["inference"]
    return {**values, "inference": inference}


STYLE = Style(
    name="impala",
    about="Actors fill a bounded queue and wait while it is full; V-trace corrects the lag.",
    settings=settings,
    program=tianji.program,
    differences=(
        LOSS,
        "Correction: truncated importance weights in targets and traces.",
        PACING,
    ),
)
