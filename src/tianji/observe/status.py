"""What a run does, or did, as its folder tells it. Reads files alone, and little of them."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

from tianji.config.files import load_config
from tianji.config.plan import Prediction, RunPlan
from tianji.config.run import RunConfig
from tianji.errors import UsageError
from tianji.explain.explain import explain, prediction_error
from tianji.explain.interface import Explanation
from tianji.observe.run_log import METRICS_FILE, read_last, read_lines
from tianji.observe.summary import SUMMARY_FILE, read_summary
from tianji.run_folder.paths import CONFIG_FILE, LOCK_FILE
from tianji.run_folder.plan_file import read_plan

State: TypeAlias = Literal["running", "finished", "failed", "interrupted", "lost"]


@dataclass(frozen=True, slots=True)
class RunStatus:
    """A run as it stands."""

    run_dir: Path
    config: RunConfig
    plan: RunPlan
    state: State
    record: Mapping[str, Any]
    """The newest record of metrics; empty before the first."""
    first_return: float | None
    """The first mean return in the metrics; None before an episode has finished."""
    age_s: float | None
    """How old it is."""
    summary: Mapping[str, Any] | None
    """Of a run that ended in order."""
    explanation: Explanation

    def report(self) -> dict[str, Any]:
        """For programs."""
        predicted = self.plan.prediction
        return {
            "run": self.run_dir.name,
            "run_dir": self.run_dir,
            "state": self.state,
            "age_s": self.age_s,
            "gauges": self.record,
            "critical_path": self.explanation.critical_path,
            "explanation": list(self.explanation.sentences),
            "predicted": predicted.model_dump() if predicted is not None else None,
            "prediction_error": self._prediction_error(predicted),
            "summary": self.summary,
        }

    def _prediction_error(self, predicted: Prediction | None) -> dict[str, float] | None:
        """Of the whole run once it has ended, until then of its last seconds."""
        if predicted is None:
            return None
        told = (self.summary or {}).get("prediction_error")
        return told or prediction_error(predicted, self.record.get("rates_per_s", {}))


def read_status(run_dir: Path) -> RunStatus:
    """Look into the folder of a run."""
    config, plan = load_config(run_dir / CONFIG_FILE), read_plan(run_dir)
    is_running = _is_locked(run_dir / LOCK_FILE)
    record = read_last(run_dir / METRICS_FILE) or {}
    summary = None if is_running else _read_summary(run_dir, record)
    told = (summary or {}).get("explanation")
    explanation = (
        Explanation(summary["critical_path"], tuple(told))
        if summary and told
        else explain(record, plan, config.engine)
    )
    return RunStatus(
        run_dir=run_dir,
        config=config,
        plan=plan,
        state="running" if is_running else _ended(summary),
        record=record,
        first_return=_first_return(run_dir / METRICS_FILE),
        age_s=_age_s(record, run_dir / METRICS_FILE),
        summary=summary,
        explanation=explanation,
    )


def _first_return(path: Path) -> float | None:
    returns = (record.get("mean_return_100") for record in read_lines(path))
    return next((value for value in returns if value is not None), None)


def _is_locked(path: Path) -> bool:
    """Whether a process holds the run."""
    try:
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def _read_summary(run_dir: Path, record: Mapping[str, Any]) -> dict[str, Any] | None:
    """None where there is none, or where the run went on since and did not end in order."""
    path = run_dir / SUMMARY_FILE
    summary = read_summary(run_dir)
    if summary is None and path.exists():
        raise UsageError(f"'{path}' is broken: it holds no JSON object.")
    if summary is None or (record.get("env_steps") or 0) > (summary.get("env_steps") or 0):
        return None
    return summary


def _ended(summary: Mapping[str, Any] | None) -> State:
    because = summary["stopped_because"] if summary else None
    if because is None:
        return "lost"
    states: dict[str, State] = {"failed": "failed", "interrupted": "interrupted"}
    return states.get(because, "finished")


def _age_s(record: Mapping[str, Any], path: Path) -> float | None:
    """Older runs have no time in their records: then that of the file."""
    if not record:
        return None
    try:
        at_s = datetime.fromisoformat(record["time"]).timestamp()
    except (KeyError, ValueError, TypeError):
        at_s = path.stat().st_mtime
    return max(0.0, time.time() - at_s)
