"""All runs of a nigt figure on this machine, and the data that they make."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tianji.config.machine import read_machine
from tianji.figures.files import Data
from tianji.figures.gathering.comparison import panel_data
from tianji.figures.gathering.grid import Grid, Runs
from tianji.figures.gathering.panels import ETA, FIGURES, Panel
from tianji.figures.gathering.pool import make_runs, read_runs
from tianji.figures.gathering.trial import GAMMA, core_s
from tianji.wording import counted

FOLDER = Path("nigt-runs")
"""The folder for runs, in the current one; runs that are there are not repeated."""


def whole_grid() -> Grid:
    """Return the grid of all figures, which share runs."""
    return Grid([panel for panels in FIGURES.values() for panel in panels])


def measure_panels(name: str) -> Data:
    """Tune, run all seeds, and return the data of a figure."""
    grid, panels, cores = whole_grid(), FIGURES[name], len(read_machine().cores)
    num_runs, about_s = estimate(grid, panels)
    minutes = math.ceil(about_s / cores / 60)
    sys.stderr.write(
        f"{name}: about {num_runs} runs and {counted(minutes, 'minute')} on {cores} cores. "
        f"Runs are kept in {FOLDER}/: after Ctrl-C the same command goes on.\n"
    )
    make_runs(lambda runs: grid.wanted(panels, runs), FOLDER, cores)
    return panels_data(grid, panels, read_runs(FOLDER))


def estimate(grid: Grid, panels: Sequence[Panel]) -> tuple[int, float]:
    """Return the number of runs and their seconds on one core.

    It assumes that panels that share runs choose the same step size.
    """
    tuning = grid.tuning(panels)
    again = {trial.name.partition("_step")[0]: core_s(trial) for trial in tuning}
    more = len(grid.seeds) - 1
    return len(tuning) + more * len(again), sum(map(core_s, tuning)) + more * sum(again.values())


def panels_data(grid: Grid, panels: Sequence[Panel], runs: Runs) -> dict[str, Any]:
    """Return the data of a figure; a point is a panel."""
    return {
        "machine": next(iter(runs.values()))["machine"],
        "points": [panel_data(grid, panel, runs) for panel in panels],
        "settings": {"eta": ETA, "gamma": GAMMA, "seeds": list(grid.seeds)},
    }
