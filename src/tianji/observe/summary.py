"""What a run did, or does, as its folder tells it: summary.json, and its status."""

from __future__ import annotations

import fcntl
import json
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from tianji.checkpoint.durable import replace_json, to_plain
from tianji.config.files import load_config
from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.errors import UsageError
from tianji.observe.run_log import all_metrics, last_metrics
from tianji.records import (
    NOTHING_DONE,
    GroupFigures,
    HostFigures,
    LearnerMetrics,
    Metrics,
    Summary,
    SummaryFacts,
    with_defaults,
)
from tianji.run_folder.folder import read_plan
from tianji.run_folder.paths import CONFIG_FILE, LOCK_FILE, METRICS_FILE

SUMMARY_FILE = "summary.json"


def build_summary(
    config: RunConfig,
    run_dir: Path,
    facts: SummaryFacts,
    record: LearnerMetrics | Metrics | Summary | None = None,
) -> Summary:
    """Build the summary of a run from its last record, or an earlier summary, and more facts.

    Missing values count as nothing done. Keys of the record that no summary has are left out. A
    run that failed names its first cause.
    """
    done: Mapping[str, Any] = {k: v for k, v in (record or {}).items() if k in NOTHING_DONE}
    whole = with_defaults({**done, **facts}, NOTHING_DONE)
    cause = whole.pop("first_cause", "unknown")
    whole |= {"first_cause": cause} if whole["stopped_because"] == "failed" else {}
    whole["groups"] = whole["groups"] or [_only_group(whole)]
    summary = {
        "env": config.env_name,
        "algorithm": config.algorithm.name,
        "style": config.style,
        "engine": config.engine,
        "seed": config.seed,
        "stopped_because": whole["stopped_because"],
        "target_return": config.target_return,
        **whole,
        "run_dir": str(run_dir),
    }
    return cast("Summary", to_plain(summary))


def _only_group(whole: Mapping[str, Any]) -> GroupFigures:
    """Return the figures of a run with one group as those of this group."""
    return GroupFigures(
        group=0,
        env_steps=whole["env_steps"],
        rates_per_s=whole["rates_per_s"],
        lag_versions=whole["lag_versions"],
        updates=whole["updates"],
        version=whole["version"],
        restarts=whole["restarts"],
    )


def this_host(num_groups: int, usable_cores: int) -> HostFigures:
    """Return the figures of this machine, which runs all groups."""
    name = socket.gethostname()
    return HostFigures(
        host=name,
        groups=list(range(num_groups)),
        usable_cores=usable_cores,
        from_learner_bytes=0,
        to_learner_bytes=0,
        policies=0,
    )


def write_summary(run_dir: Path, summary: Summary) -> None:
    """Put summary.json into the run's folder, complete or not at all."""
    replace_json(run_dir / SUMMARY_FILE, summary)


def read_summary(run_dir: Path) -> Summary | None:
    """Read the summary of a finished run; None where there is none."""
    try:
        found = json.loads((run_dir / SUMMARY_FILE).read_bytes())
    except (OSError, ValueError):
        return None
    return cast("Summary", with_defaults(found, NOTHING_DONE)) if isinstance(found, dict) else None


State: TypeAlias = Literal["running", "finished", "failed", "interrupted", "lost"]
_ENDED: dict[str, State] = {"failed": "failed", "interrupted": "interrupted"}


@dataclass(frozen=True, slots=True)
class RunStatus:
    """A run as it stands."""

    run_dir: Path
    config: RunConfig
    plan: RunPlan
    state: State
    """A run is `lost` if it is neither running nor has a summary of what it did."""
    record: Metrics | None
    """The newest record of metrics; None before the first."""
    first_return: float | None
    """The first mean return in the metrics; None before an episode has finished."""
    age_s: float | None
    """Age of the newest record."""
    summary: Summary | None
    """None where the run did not shut down cleanly."""


def read_status(run_dir: Path) -> RunStatus:
    """Look into the folder of a run."""
    is_running = _is_locked(run_dir / LOCK_FILE)
    record = last_metrics(run_dir)
    summary = None if is_running else _read_summary(run_dir, record)
    ended: State = _ENDED.get(summary["stopped_because"], "finished") if summary else "lost"
    return RunStatus(
        run_dir=run_dir,
        config=load_config(run_dir / CONFIG_FILE),
        plan=read_plan(run_dir),
        state="running" if is_running else ended,
        record=record,
        first_return=_first_return(run_dir),
        age_s=None if record is None else _age_s(record, run_dir / METRICS_FILE),
        summary=summary,
    )


def _first_return(run_dir: Path) -> float | None:
    returns = (record["mean_return_100"] for record in all_metrics(run_dir))
    return next((value for value in returns if value is not None), None)


def _is_locked(path: Path) -> bool:
    """Return whether a process holds the run."""
    try:
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def _read_summary(run_dir: Path, record: Metrics | None) -> Summary | None:
    """Return None where there is none, or where the run continued and did not shut down cleanly."""
    path = run_dir / SUMMARY_FILE
    summary = read_summary(run_dir)
    if summary is None and path.exists():
        raise UsageError(f"'{path}' is broken: it holds no JSON object.")
    if summary is None or (record is not None and record["env_steps"] > summary["env_steps"]):
        return None
    return summary


def _age_s(record: Metrics, path: Path) -> float:
    """Records of older versions have no time; then that of the file counts."""
    try:
        at_s = datetime.fromisoformat(record["time"]).timestamp()
    except (KeyError, ValueError, TypeError):
        at_s = path.stat().st_mtime
    return max(0.0, time.time() - at_s)
