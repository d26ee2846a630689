"""Training runs behind figures."""

from __future__ import annotations

import contextlib
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tianji.config.run import RunConfig
    from tianji.records import Summary


class TrainedRun(NamedTuple):
    """What a run left: its summary, and the records of `metrics.jsonl`."""

    summary: Summary
    records: list[dict[str, Any]]


def train_once(config: RunConfig) -> TrainedRun:
    """Train in a temporary folder."""
    from tianji.run import train_config

    with tempfile.TemporaryDirectory(prefix="tianji-figure-") as folder, contextlib.chdir(folder):
        summary = train_config(config)
        lines = (Path(summary["run_dir"]) / "metrics.jsonl").read_text().splitlines()
    return TrainedRun(summary, [json.loads(line) for line in lines])
