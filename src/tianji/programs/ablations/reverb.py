"""Reverb (Cassirer et al. 2021): a rate limiter in front of the store makes either side wait.

    actor --(unrolls; waits if it may not insert)--> store --(waits if it may not sample)--> learner

Everything else is as in tianji: only what keeps actors and learner in step is replaced.
"""

from __future__ import annotations

from tianji.config.values import Values
from tianji.programs.style import Given, Style, fix
from tianji.programs.styles import tianji


def settings(values: Values, given: Given) -> Values:
    """Let the limiter decide who waits."""
    why = "a rate limiter is what keeps its actors and its learner in step."
    return fix("reverb", values, given, why, balance="limiter", lag_target="auto")


STYLE = Style(
    name="reverb",
    about="A limit on samples per insert makes actors wait that are ahead, and the learner too.",
    settings=settings,
    program=tianji.program,
    differences=(
        "Pacing: inserts are blocked when actors are ahead of the window; max_lag bounds nothing.",
    ),
    kind="ablation",
)
