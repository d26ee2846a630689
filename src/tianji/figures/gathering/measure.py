"""All runs of a nigt figure on this machine, and the data that they make.

Many runs are made at the same time, one JSON file each in a folder. A run that has a file is not
repeated. A grid can therefore be stopped and continued, or made in parts on several machines whose
files are copied together.
"""

from __future__ import annotations

import json
import logging
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tianji.checkpoint.durable import replace_json
from tianji.config.machine import read_machine
from tianji.engines.supervise.process import THREAD_VARIABLES
from tianji.engines.worker import die_with_parent
from tianji.figures.files import Data
from tianji.figures.gathering.comparison import panel_data
from tianji.figures.gathering.grid import Grid, Runs, run_of
from tianji.figures.gathering.panels import ETA, FIGURES, Panel, Trial
from tianji.figures.gathering.trial import GAMMA, core_s, make_run
from tianji.wording import counted

# The folder for runs, in the current one; runs that are there are not repeated.
FOLDER = Path("nigt-runs")


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


_MARGIN = 1.15  # A run may take this many times its estimate


def read_runs(*folders: Path) -> dict[str, dict[str, Any]]:
    """Return the runs that have a file, by the names of their trials."""
    files = (file for folder in folders for file in sorted(folder.glob("*.json")))
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}


def make_runs(
    wanted: Callable[[Runs], Sequence[Trial]],
    folder: Path,
    num_processes: int,
    limit_s: float = math.inf,
    known: Runs | None = None,
) -> list[Trial]:
    """Make the wanted runs that have no file yet, the longest first; return what is left.

    wanted: called again after every run, with the results so far.
    limit_s: no run begins that would probably not end by then.
    known: results from elsewhere.
    """
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))  # before they load libraries
    began, runs = time.monotonic(), {**(known or {}), **read_runs(folder)}
    begun: set[Trial] = set()
    working: dict[Future[dict[str, Any]], Trial] = {}
    failures: list[BaseException] = []
    with ProcessPoolExecutor(num_processes, get_context("spawn"), prepare, (os.getpid(),)) as pool:
        while True:
            missing = [t for t in wanted(runs) if run_of(t, runs) is None and t not in begun]
            for trial in sorted(missing, key=core_s, reverse=True):
                done_s = time.monotonic() - began + core_s(trial) * _MARGIN
                if len(working) < num_processes and done_s <= limit_s:
                    working[pool.submit(make_run, trial)] = trial
                    begun.add(trial)
            if not working:
                break
            for future in wait(working, return_when=FIRST_COMPLETED).done:
                trial = working.pop(future)
                if (error := future.exception()) is None:
                    runs[trial.name] = future.result()
                    # Atomically: another process may read the folder.
                    replace_json(folder / f"{trial.name}.json", future.result())
                    text = f"{len(runs)} runs are complete"
                else:
                    failures.append(error)
                    text = f"{trial.name} failed: {error}"
                sys.stderr.write(f"{time.monotonic() - began:5.0f} s: {text}\n")
    if failures:
        raise failures[0]
    return missing


def prepare(parent_pid: int) -> None:
    """Make a process of the pool end with its parent, and silence warnings.

    Gymnasium would warn in every process about old versions of environments.
    """
    import warnings

    import gymnasium

    die_with_parent(parent_pid)
    warnings.simplefilter("ignore")
    gymnasium.logger.min_level = logging.ERROR
