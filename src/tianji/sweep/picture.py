"""The picture of a sweep: the objective over trials, and the best so far."""

from __future__ import annotations

import itertools
import textwrap
from pathlib import Path
from typing import Any

from tianji.figures import style
from tianji.sweep.report import SweepReport
from tianji.wording import counted

PICTURE_FILE = "sweep.png"
ABOUT_WIDTH = 130
"""Characters of a line below the panel."""
NONE_REACHED = "mean return of the last 100 episodes (no trial has reached the target)"
MARKS = {
    "finished": ("v", "target not reached"),
    "pruned": ("x", "pruned"),
    "failed": ("P", "failed"),
}
"""Marker and name of trials without a value."""


def draw(report: SweepReport, words: str, path: Path) -> None:
    """Draw all trials; those without a value stand at the lower edge. words: the objective."""
    figure = style.new_figure(9.0, 4.8, f"{report['env']}, {report['algorithm']}: sweep")
    axes: Any = figure.subplots()
    values, words, is_lower_better = _values(report, words)
    numbers, best = [*values], min if is_lower_better else max
    axes.plot(numbers, [*values.values()], "o", color=style.BLUE, markersize=5, label="finished")
    so_far = list(itertools.accumulate(values.values(), best))
    axes.step(numbers, so_far, where="post", color=style.RED, linewidth=1.6, label="best so far")
    low = axes.get_ylim()[0]
    for state, (marker, name) in MARKS.items():
        trials = (t for t in report["trials"] if t["state"] == state)
        if at := [t["number"] for t in trials if t["number"] not in values]:
            look = {"color": style.QUIET, "clip_on": False, "label": name}
            axes.plot(at, [low] * len(at), marker, **look)
    axes.set_ylim(bottom=low)
    style.quieten(axes)
    axes.set(xlabel="trial", ylabel=textwrap.fill(words, 40))
    axes.xaxis.get_major_locator().set_params(integer=True)
    style.legend_below(figure, ncols=5, about=_about(report))
    style.save(figure, path)


def _values(report: SweepReport, words: str) -> tuple[dict[int, float], str, bool]:
    """Return what to draw by trial, its name, and whether lower is better: the objective, or
    returns if no trial has reached the target."""
    trials = report["trials"]
    found = {t["number"]: t["value"] for t in trials if t["value"] is not None}
    if found:
        return found, words, report["direction"] == "minimize"
    returns = {
        t["number"]: t["mean_return_100"]
        for t in trials
        if t["state"] == "finished" and t["mean_return_100"] is not None
    }
    return returns, NONE_REACHED, False


def _about(report: SweepReport) -> str:
    machine = report["machine"]
    searched = "; ".join(f"{name}: {', '.join(of)}" for name, of in report["search"].items())
    about = (
        f"Searched {searched}. {machine['cpu']}, {counted(machine['cores'], 'core')}. "
        f"Commit {report['commit']}: {report['command']}"
    )
    return textwrap.fill(about, ABOUT_WIDTH)
