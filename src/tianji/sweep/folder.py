"""The folder of a sweep: new, or continued by the same command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tianji.config.changes import change_since
from tianji.errors import UsageError
from tianji.figures.files import describe_machine
from tianji.run_folder.paths import default_run_name, new_folder, numbered
from tianji.sweep.report import SWEEP_FILE, settings_of
from tianji.sweep.request import SweepRequest


def open_folder(request: SweepRequest, base: Path) -> Path:
    """Return the folder of the sweep that this command continues; else make one.

    A folder that was named must fit. Without a name, one that does not fit is left alone, and the
    next free name is taken.
    """
    name, stem = request.config.run, f"sweep-{default_run_name(request.config)}"
    if name is not None:
        if (base / name / SWEEP_FILE).is_file() and (why := _obstacle(request, base / name)):
            raise UsageError(f"Sweep '{name}' {why} Choose another name with --run.")
        return _made(name, base)
    for found in numbered(stem, base):
        if (found / SWEEP_FILE).is_file() and not _obstacle(request, found):
            return found
    return new_folder(None, stem, base)


def _made(name: str, base: Path) -> Path:
    if (base / name / SWEEP_FILE).is_file():
        return base / name
    return new_folder(name, name, base)


def _obstacle(request: SweepRequest, folder: Path) -> str:
    """Return why the trials there cannot be compared with new ones; empty if they can."""
    try:
        before: dict[str, Any] = json.loads((folder / SWEEP_FILE).read_bytes())
        change = change_since(before["settings"], settings_of(request))
        kept = before["search"], before["objective"], before["machine"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"cannot be read: {error}."
    if change:
        return f"has trials with other settings: {change}."
    if kept[0] != request.written:
        return f"searches other values: {_words(kept[0])}; now: {_words(request.written)}."
    if kept[1] != request.objective.name:
        return f"has another objective: {kept[1]}."
    if request.objective.name == "time" and kept[2] != describe_machine():
        return "has times of another machine, which cannot be compared with those of this one."
    return ""


def _words(search: dict[str, list[str]]) -> str:
    return ", ".join(f"{name} ({', '.join(values)})" for name, values in search.items())
