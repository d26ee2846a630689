"""Many runs at once, one JSON file each in a folder.

A run that has its file is not repeated: a grid can be stopped and continued, and made in parts on
several machines whose files are put together.
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

from tianji.engines.worker import die_with_parent
from tianji.figures.gathered import Trial
from tianji.figures.gathered_grid import Runs, run_of
from tianji.figures.gathered_runs import core_s, make_run

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_MARGIN = 1.15
"""Between what a run takes as far as can be told, and what it is given."""


def read_runs(*folders: Path) -> dict[str, dict[str, Any]]:
    """What is there already, by the trials' names."""
    files = (file for folder in folders for file in sorted(folder.glob("*.json")))
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}


def make_runs(
    wanted: Callable[[Runs], Sequence[Trial]],
    folder: Path,
    num_processes: int,
    limit_s: float = math.inf,
    known: Runs | None = None,
) -> list[Trial]:
    """Make what is wanted and has no file yet, the longest first; gives what is left.

    wanted: asked again after every run, for what is known by then.
    limit_s: nothing begins that would not be done by then, as far as can be told.
    known: made elsewhere, beside what is in the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.update(dict.fromkeys(THREADS, "1"))  # before the processes load their libraries
    with ProcessPoolExecutor(num_processes, get_context("spawn"), prepare, (os.getpid(),)) as pool:
        making = _Making(pool, folder, {**(known or {}), **read_runs(folder)}, limit_s)
        while True:
            missing = making.missing(wanted)
            making.begin(missing, num_processes)
            if not making.working:
                break
            making.wait()
    if making.failures:
        raise making.failures[0]
    return missing


class _Making:
    """What is being made, and how long it takes here compared with what was thought."""

    def __init__(
        self, pool: ProcessPoolExecutor, folder: Path, runs: dict[str, Any], limit_s: float
    ) -> None:
        self._pool = pool
        self._folder = folder
        self._runs = runs
        self._limit_s = limit_s
        self._began = time.monotonic()
        self._thought_s = self._took_s = 0.0
        self._tried: set[Trial] = set()
        self.working: dict[Future[dict[str, Any]], Trial] = {}
        self.failures: list[BaseException] = []

    def missing(self, wanted: Callable[[Runs], Sequence[Trial]]) -> list[Trial]:
        trials = wanted(self._runs)
        return [t for t in trials if run_of(t, self._runs) is None and t not in self._tried]

    def begin(self, missing: Sequence[Trial], at_once: int) -> None:
        slowness = _MARGIN * (self._took_s / self._thought_s if self._thought_s else 1.0)
        for trial in sorted(missing, key=core_s, reverse=True):
            done_s = time.monotonic() - self._began + core_s(trial) * slowness
            if len(self.working) < at_once and done_s <= self._limit_s:
                self.working[self._pool.submit(make_run, trial)] = trial
                self._tried.add(trial)

    def wait(self) -> None:
        for future in wait(self.working, return_when=FIRST_COMPLETED).done:
            trial = self.working.pop(future)
            if (error := future.exception()) is not None:
                self.failures.append(error)
                self._tell(f"{trial.name} failed: {error}")
                continue
            self._runs[trial.name] = run = future.result()
            self._keep(trial, run)
            self._thought_s += core_s(trial)
            self._took_s += run["core_s"]
            self._tell(f"runs that are there: {len(self._runs)}")

    def _keep(self, trial: Trial, run: dict[str, Any]) -> None:
        """At once, and whole or not at all."""
        unfinished = self._folder / f"{trial.name}.part"
        unfinished.write_text(json.dumps(run) + "\n", encoding="utf-8")
        unfinished.rename(self._folder / f"{trial.name}.json")

    def _tell(self, text: str) -> None:
        sys.stderr.write(f"{time.monotonic() - self._began:5.0f} s: {text}\n")


def prepare(parent_pid: int) -> None:
    """In each process: end with whoever wants the runs, and be quiet. Of old versions of
    environments every process would say that they are old."""
    import warnings

    import gymnasium

    die_with_parent(parent_pid)
    warnings.simplefilter("ignore")
    gymnasium.logger.min_level = logging.ERROR
