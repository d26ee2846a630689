"""A sweep: trials of one preset with different settings, which share the machine.

    report = run_sweep(request, make_screen("auto"))      # runs/sweep-.../trial-0, trial-1, ...

Every trial is an ordinary run, in a process of its own and on cores of its own. Optuna proposes the
settings of each when cores are free for it. A sweep that was stopped continues where it was.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

from tianji.checkpoint.durable import replace_json, to_plain
from tianji.config.files import save_config
from tianji.config.machine import read_machine
from tianji.run_folder.folder import RunFolder
from tianji.run_folder.paths import RUNS
from tianji.seeds.run_all import Screen, Shares, run_from
from tianji.seeds.train import shares_of
from tianji.sweep.folder import open_folder
from tianji.sweep.report import BEST_FILE, SWEEP_FILE, SweepReport, make_report
from tianji.sweep.request import SweepRequest
from tianji.sweep.study import Study, import_optuna
from tianji.sweep.trials import Trials
from tianji.wording import counted


def run_sweep(request: SweepRequest, screen: Screen, base: Path = RUNS) -> SweepReport:
    """Run the trials that are missing and report all of them.

    A person who stops it gets a report of the trials that have ended.
    """
    import_optuna()
    shares = _shares(request)
    folder = open_folder(request, base)
    with RunFolder(folder):
        config = request.config
        study = Study(folder, request.searches, request.objective, config.seed, request.prune)
        num_left = request.num_trials - len(study.ended())
        if num_left > 0:
            replace_json(folder / SWEEP_FILE, make_report(request, study, folder))
            trials = Trials(request, study, folder, num_left, by_rule=len(shares) > 1)
            run_from(trials, shares, screen, _title(request, len(shares)), folder)
            trials.look()
        report = make_report(request, study, folder)
        _write_results(report, request, study, folder)
    return report


def _shares(request: SweepRequest) -> Shares:
    """Return the cores of each of the trials that run at the same time. Raises UsageError where not
    even one fits, before any process starts."""
    at_once = min(request.num_jobs or request.num_trials, request.num_trials)
    return shares_of(request.config, at_once, read_machine())


def _title(request: SweepRequest, at_once: int) -> str:
    config = request.config
    facts = (config.env_name, config.algorithm.name, config.engine)
    return " · ".join((*facts, f"{counted(request.num_trials, 'trial')}, {at_once} at a time"))


def _write_results(report: SweepReport, request: SweepRequest, study: Study, folder: Path) -> None:
    """Write sweep.json, the best settings and the picture; the report says where they are."""
    if report["best"] is not None:
        number = report["best"]["number"]
        (best,) = (trial for trial in study.ended() if trial.number == number)
        config = request.with_values(best.values).model_copy(update={"run": None})
        save_config(config, folder / BEST_FILE)
        report["best_file"] = str(folder / BEST_FILE)
        from tianji.sweep.picture import PICTURE_FILE, draw

        draw(report, request.objective.words, folder / PICTURE_FILE)
        report["picture"] = str(folder / PICTURE_FILE)
    replace_json(folder / SWEEP_FILE, cast("SweepReport", to_plain(report)))
