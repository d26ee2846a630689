"""The curves of docs/zoo.md: training returns over steps, one small panel for each preset."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import EngFormatter, MaxNLocator

from benchmarks.zoo.page import picture_name, sections
from benchmarks.zoo.runs import NUM_POINTS, Result, Runs
from benchmarks.zoo.summary import results_of
from benchmarks.zoo.tasks import ROWS
from tianji.figures.style import BLUE, RED, legend_below, new_figure, quieten
from tianji.zoo.evidence import Zoo

COLUMNS = 4
COLORS = {"sb3": RED, "tianji": BLUE}
NAMES = {"sb3": "Stable-Baselines3, RL Zoo", "tianji": "TianJi"}


def draw_all(zoo: Zoo, learnt: Runs, folder: Path) -> None:
    rows = {row.preset: row for row in ROWS}
    for title, of_title in sections(zoo["rows"]).items():
        panels = {row["preset"]: results_of(learnt, rows[row["preset"]]) for row in of_title}
        figure = draw(panels)
        figure.savefig(folder / picture_name(title), dpi=80, metadata={"Software": None})


def draw(panels: dict[str, dict[str, list[Result]]]) -> Any:
    height = -(-len(panels) // COLUMNS)
    figure = new_figure(11.0, 2.4 * height + 0.5, "")
    grid = figure.subplots(height, COLUMNS, squeeze=False)
    for axes in grid.flat:
        axes.set_visible(False)
    for axes, (preset, contestants) in zip(grid.flat, panels.items(), strict=False):
        axes.set_visible(True)
        axes.set_title(preset, size=8)
        for name in COLORS:
            draw_curves(axes, contestants[name], name)
        quieten(axes)
        axes.tick_params(labelsize=6)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    legend_below(figure, ncols=len(COLORS))
    return figure


def draw_curves(axes: Any, runs: Sequence[Result], name: str) -> None:
    """Draw every seed thinly, and their mean where all have points."""
    for run in runs:
        axes.plot(*np.array(run["curve"]).T, color=COLORS[name], linewidth=0.5, alpha=0.4)
    if not runs:
        return
    by_place: dict[int, list[float]] = {}
    for run in runs:
        for steps, value in run["curve"]:
            place = int(NUM_POINTS * steps / run["trained_steps"])
            by_place.setdefault(place, []).append(value)
    places = sorted(place for place, values in by_place.items() if len(values) == len(runs))
    width = runs[0]["trained_steps"] / NUM_POINTS
    means = [float(np.mean(by_place[place])) for place in places]
    spots = [(place + 0.5) * width for place in places]
    axes.plot(spots, means, color=COLORS[name], linewidth=1.6, label=NAMES[name])
