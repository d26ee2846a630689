"""What trackers share: their library, the names of their runs, and summaries as plain values."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from tianji.checkpoint.durable import replace_json
from tianji.errors import UsageError
from tianji.records import Summary

TRACKERS_FILE = "trackers.json"
"""The run's id in every tracker, so that a resumed run continues there."""
PROJECT = "tianji"
"""Where runs are filed if the environment names no other place."""


def import_library(name: str, title: str) -> Any:
    """Import the library of a tracker; the extra has its name."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(
            f"Callback '{name}' needs {title}, which is not installed ({error}). Install it with: "
            f"pip install 'tianji[{name}]'"
        ) from error


def kept_id(run_dir: Path, tracker: str) -> str | None:
    """Return the id that the run has in this tracker; None if it is new there."""
    try:
        found = json.loads((run_dir / TRACKERS_FILE).read_bytes()).get(tracker)
    except (OSError, ValueError, AttributeError):
        return None
    return found if isinstance(found, str) else None


def keep_id(run_dir: Path, tracker: str, run_id: str) -> None:
    others = {name: kept_id(run_dir, name) for name in ("wandb", "mlflow")}
    known = {name: kept for name, kept in others.items() if kept is not None}
    replace_json(run_dir / TRACKERS_FILE, {**known, tracker: run_id})


def plain_values(summary: Summary) -> dict[str, float | str]:
    """Return the numbers and words of a summary, without what is not known, and without lists."""
    return {
        name: value
        for name, value in summary.items()
        if isinstance(value, int | float | str) and not isinstance(value, bool)
    }
