"""All runs of a figure of gathered gradients here and now, and the data that they make."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tianji.config.machine import read_machine
from tianji.figures.gathered import ETA, FIGURES, Panel
from tianji.figures.gathered_data import panel_data
from tianji.figures.gathered_grid import Grid, Runs
from tianji.figures.gathered_pool import make_runs, read_runs
from tianji.figures.gathered_runs import GAMMA, core_s
from tianji.figures.look import numbered
from tianji.figures.points import measured_here

FOLDER = Path("nigt-runs")
"""In the current folder: runs that were made are not made again."""


def whole_grid() -> Grid:
    """Of all figures, so that they share runs."""
    return Grid([panel for panels in FIGURES.values() for panel in panels])


def measure_figure(name: str) -> dict[str, Any]:
    """Tune, run all seeds, and put the data together."""
    grid, panels, cores = whole_grid(), FIGURES[name], len(read_machine().cores)
    num_runs, about_s = estimate(grid, panels)
    minutes = math.ceil(about_s / cores / 60)
    sys.stderr.write(
        f"{name}: about {num_runs} runs and {numbered(minutes, 'minute')} on {cores} cores. "
        f"Runs are kept in {FOLDER}/: after Ctrl-C the same command goes on.\n"
    )
    make_runs(lambda runs: grid.wanted(panels, runs), FOLDER, cores)
    return figure_data(name, grid, panels, read_runs(FOLDER))


def estimate(grid: Grid, panels: Sequence[Panel]) -> tuple[int, float]:
    """Runs, and seconds on one core, if every panel chooses as the others that share its runs."""
    tuning = grid.tuning(panels)
    again = {trial.name.partition("_step")[0]: core_s(trial) for trial in tuning}
    more = len(grid.seeds) - 1
    return len(tuning) + more * len(again), sum(map(core_s, tuning)) + more * sum(again.values())


def figure_data(name: str, grid: Grid, panels: Sequence[Panel], runs: Runs) -> dict[str, Any]:
    """In the form of the data that comes with the package; a point is a panel."""
    points = [panel_data(grid, panel, runs) for panel in panels]
    machine = next(iter(runs.values()))["machine"]
    settings = {"eta": ETA, "gamma": GAMMA, "seeds": list(grid.seeds)}
    return {**measured_here(name, points), "machine": machine, "settings": settings}
