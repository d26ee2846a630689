"""sweep.json: what a sweep searched, what every trial reached, and which settings were best."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NotRequired, TypedDict

from tianji.comparison.provenance import Provenance, provenance
from tianji.observe.summary import read_summary
from tianji.run_folder.paths import TRIAL_PREFIX
from tianji.sweep.request import SweepRequest
from tianji.sweep.study import EndedTrial, Study, TrialState

SWEEP_FILE = "sweep.json"
BEST_FILE = "best.yaml"
_UNLIKE: dict[str, Any] = {"run": True, "observe": {"display": True}}
"""Settings that may differ between two sessions of one sweep."""


class TrialFigures(TypedDict):
    """One trial."""

    number: int
    state: TrialState
    value: float | None
    """Value of the objective; None if the trial was pruned, failed or did not reach its target."""
    settings: dict[str, str]
    """Values of the searched settings, by short name."""
    mean_return_100: float | None
    time_to_target_s: float | None
    env_steps: int
    wall_s: float
    run_dir: str
    first_cause: NotRequired[str]


class SweepReport(Provenance):
    """sweep.json."""

    command: str
    env: str
    algorithm: str
    objective: str
    """`return` or `time`."""
    direction: str
    target_return: float | None
    search: dict[str, list[str]]
    num_trials: int
    missing: int
    """Trials that have not been run yet."""
    trials: list[TrialFigures]
    best: TrialFigures | None
    best_file: str | None
    picture: str | None
    run_dir: str
    settings: dict[str, Any]
    """Settings that all trials start from."""


def trial_dir(folder: Path, number: int) -> Path:
    return folder / f"{TRIAL_PREFIX}{number}"


def settings_of(request: SweepRequest) -> dict[str, Any]:
    return request.config.model_dump(mode="json", exclude=_UNLIKE)


def make_report(request: SweepRequest, study: Study, folder: Path) -> SweepReport:
    """Report all trials that have ended, those of earlier sessions too."""
    trials = [_figures(request, trial, folder) for trial in study.ended()]
    best = study.best()
    return SweepReport(
        command=request.command,
        env=request.config.env_name,
        algorithm=request.config.algorithm.name,
        objective=request.objective.name,
        direction=request.objective.direction,
        target_return=request.objective.target,
        search=request.written,
        num_trials=request.num_trials,
        missing=max(0, request.num_trials - len(trials)),
        trials=trials,
        best=next((trial for trial in trials if trial["number"] == best), None),
        best_file=None,
        picture=None,
        run_dir=str(folder),
        settings=settings_of(request),
        **provenance(),
    )


def _figures(request: SweepRequest, trial: EndedTrial, folder: Path) -> TrialFigures:
    run_dir = trial_dir(folder, trial.number)
    summary = read_summary(run_dir)
    names = {one.path: one.name for one in request.searches}
    figures = TrialFigures(
        number=trial.number,
        state=trial.state,
        value=request.objective.shown(trial.value),
        settings={names[path]: text for path, text in trial.values.items()},
        mean_return_100=summary["mean_return_100"] if summary else None,
        time_to_target_s=summary["time_to_target_s"] if summary else None,
        env_steps=summary["env_steps"] if summary else 0,
        wall_s=summary["wall_s"] if summary else 0.0,
        run_dir=str(run_dir),
    )
    if trial.first_cause:
        figures["first_cause"] = trial.first_cause
    return figures
