"""summary.json: what a run did, in the same keys for every run, for people and for scripts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tianji.checkpoint.durable import replace_json, to_plain

if TYPE_CHECKING:
    from tianji.config.run import RunConfig

SUMMARY_FILE = "summary.json"
STOPPED_BECAUSE = ("target_reached", "max_env_steps", "max_wall", "interrupted", "failed")

_ZERO: Mapping[str, Any] = {
    "stopped_because": "failed",
    "mean_return_100": None,
    "best_mean_return_100": None,
    "returns_by_env": {},
    "time_to_target_s": None,
    "planning_s": None,
    "start_up_s": None,
    "wall_s": 0.0,
    "env_steps": 0,
    "updates": 0,
    "version": 0,
    "episodes": 0,
    "rates_per_s": {"produced": 0.0, "received": 0.0, "trained": 0.0, "unique_trained": 0.0},
    "lag_versions": {"mean": None, "p95": None, "max": None},
    "lag_histogram": [],
    "ratio": {"target": None, "actual": None},
    "discarded_items": 0,
    "gather": None,
    "env_failures": 0,
    "restarts": 0,
    "replans": 0,
    "busy_share": {},
    "busy_s": {},
    "waited_s": {},
    "critical_path": None,
    "explanation": [],
    "predicted": None,
    "prediction_error": None,
    "checkpoint": None,
    "can_be_filmed": None,
}
"""What is true of a run that did nothing; a run that failed early has facts for a few keys only."""


def build_summary(
    config: RunConfig, run_dir: Path, facts: Mapping[str, Any], first_cause: str | None = None
) -> dict[str, Any]:
    """The summary of a run from what is known about it.

    `facts` may be the last record of metrics and more; what is missing counts as nothing done, and
    what has no place in a summary is left out. A `first_cause` is kept for a run that failed.
    """
    known = {key: facts.get(key, nothing) for key, nothing in _ZERO.items()}
    assert known["stopped_because"] in STOPPED_BECAUSE, known["stopped_because"]
    for key in ("rates_per_s", "lag_versions", "ratio"):
        known[key] = {**_ZERO[key], **known[key]}
    summary = {
        "env": config.env_name,
        "algorithm": config.algorithm.name,
        "engine": config.engine,
        "seed": config.seed,
        "stopped_because": known.pop("stopped_because"),
        "target_return": config.target_return,
        **known,
        "run_dir": str(run_dir),
    }
    if summary["stopped_because"] == "failed":
        summary["first_cause"] = first_cause or "unknown"
    plain: dict[str, Any] = to_plain(summary)
    return plain


def write_summary(run_dir: Path, summary: Mapping[str, Any]) -> Path:
    """Put summary.json into the run's folder, whole or not at all."""
    path = run_dir / SUMMARY_FILE
    replace_json(path, summary)
    return path


def read_summary(run_dir: Path) -> dict[str, Any] | None:
    """The summary of a finished run; None where there is none."""
    try:
        found = json.loads((run_dir / SUMMARY_FILE).read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
