"""summary.json: what a run did, in the same keys for every run, for people and for scripts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tianji.checkpoint.durable import replace_json, to_plain
from tianji.records import (
    NOTHING_DONE,
    LearnerMetrics,
    Metrics,
    Summary,
    SummaryFacts,
    with_defaults,
)

if TYPE_CHECKING:
    from tianji.config.run import RunConfig

SUMMARY_FILE = "summary.json"
IDENTITY = ("env", "algorithm", "engine", "seed", "stopped_because", "target_return")
"""The first keys of the file."""


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
    whole |= {
        "env": config.env_name,
        "algorithm": config.algorithm.name,
        "engine": config.engine,
        "seed": config.seed,
        "target_return": config.target_return,
        "run_dir": str(run_dir),
    }
    cause = whole.pop("first_cause", "unknown")
    if whole["stopped_because"] == "failed":
        whole["first_cause"] = cause
    ordered = {key: whole.pop(key) for key in IDENTITY} | whole
    return cast("Summary", to_plain(ordered))


def write_summary(run_dir: Path, summary: Summary) -> Path:
    """Put summary.json into the run's folder, complete or not at all."""
    path = run_dir / SUMMARY_FILE
    replace_json(path, summary)
    return path


def read_summary(run_dir: Path) -> Summary | None:
    """Read the summary of a finished run; None where there is none."""
    try:
        found = json.loads((run_dir / SUMMARY_FILE).read_bytes())
    except (OSError, ValueError):
        return None
    return cast("Summary", with_defaults(found, NOTHING_DONE)) if isinstance(found, dict) else None
