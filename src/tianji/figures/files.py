"""The data behind figures: read from the package, made by training runs, written, described."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tianji.config.machine import read_machine
from tianji.devices.processor import processor
from tianji.errors import UsageError
from tianji.version import VERSION

if TYPE_CHECKING:
    from tianji.config.run import RunConfig
    from tianji.records import Summary

# What a data file holds: `points`, and where they come from (see `describe`).
Data: TypeAlias = Mapping[str, Any]
Point: TypeAlias = Mapping[str, Any]


def read_data(name: str) -> dict[str, Any]:
    """Return the data of a figure that comes with the package."""
    file = resources.files("tianji.figures").joinpath("data", f"{name}.json")
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"The data of figure {name} cannot be read: {error}") from error
    return content


def write_data(data: Data, path: Path) -> None:
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def describe(name: str) -> dict[str, Any]:
    """Return where data that is measured now comes from."""
    load_average = [round(load, 2) for load in os.getloadavg()]
    return {
        "figure": name,
        "command": f"tianji figure {name} --rerun",
        "commit": "installed",
        "machine": {**describe_machine(), "load_average": load_average},
        "versions": {"tianji": VERSION},
    }


def describe_machine() -> dict[str, Any]:
    return {"cpu": processor(), "cores": len(read_machine().cores)}


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
