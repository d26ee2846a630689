"""Actors and learner in turns, in processes of their own: asynchrony removed, processes kept."""

from __future__ import annotations

from tianji.config.values import Values
from tianji.programs.ablations.needs import sends_items
from tianji.programs.style import Given, Style, fix
from tianji.programs.styles import tianji

WHY = "its actors work while the learner waits, and the other way round, so that there is no lag."


def settings(values: Values, given: Given) -> Values:
    """Let actors wait for every version."""
    sends_items("lock-step", values)
    return fix("lock-step", values, given, WHY, max_lag=0, lag_target="auto", balance="paced")


STYLE = Style(
    name="lock-step",
    about="Actors wait for every version and the learner for every batch: they work in turns.",
    settings=settings,
    program=tianji.program,
    differences=(
        "Pacing: an actor begins its next item when the version that its last one led to is there.",
        "Lag: always 0, so that no correction has anything to correct.",
    ),
    kind="ablation",
)
