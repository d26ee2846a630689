"""The folder of a comparison: new, or continued with the same settings on the same machine."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tianji.comparison.contest import Contest
from tianji.config.changes import change_since
from tianji.config.settings import value_text
from tianji.errors import UsageError
from tianji.figures.files import describe_machine
from tianji.run_folder.folder import is_in_use
from tianji.run_folder.paths import new_folder, numbered
from tianji.wording import listed

COMPARISON_FILE = "comparison.json"
NEEDED = {"settings", "machine", "origins", "missing", "seeds", "reference"}
"""Keys of comparison.json that a continuation needs."""
_UNLIKE: dict[str, Any] = {"seed": True, "run": True, "observe": {"display": True}}
"""Settings that may differ between runs of one contestant."""


def open_folder(contest: Contest, name: str | None, base: Path) -> Path:
    """Return the folder of this name if it holds a comparison, to continue it; else make one.

    Without a name, one that lacks runs of the same contestants is continued.
    """
    stem = f"compare-{contest.title}"
    if name is not None:
        if (base / name / COMPARISON_FILE).is_file():
            _check_continues(contest, base / name)
            return base / name
        return new_folder(name, stem, base)
    begun = (folder for folder in numbered(stem, base) if _lacks_runs_of(contest, folder))
    return next(begun, None) or new_folder(None, stem, base)


def _lacks_runs_of(contest: Contest, folder: Path) -> bool:
    """Return whether a comparison was broken off that the same command began, and is not running
    now."""
    if not (folder / COMPARISON_FILE).is_file() or is_in_use(folder):
        return False
    try:
        before = read_before(folder)
        _check_continues(contest, folder)
    except UsageError:
        return False
    is_same = (
        before["seeds"] == list(contest.seeds)
        and before["reference"] == contest.reference.name
        and before["settings"].keys() == settings_of(contest).keys()
    )
    return is_same and bool(before["missing"])


def read_before(folder: Path) -> dict[str, Any]:
    """Return comparison.json as the last session left it; nothing for a new comparison."""
    path = folder / COMPARISON_FILE
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_bytes())
        if lacking := NEEDED - set(found):
            raise ValueError(f"it has no {listed(sorted(lacking))}")
    except (OSError, ValueError) as error:
        raise UsageError(f"'{path}' is broken: {error}. Choose another name with --run.") from error
    return dict(found)


def settings_of(contest: Contest) -> dict[str, Any]:
    return {
        one.name: one.config.model_dump(mode="json", exclude=_UNLIKE) for one in contest.contestants
    }


def _check_continues(contest: Contest, folder: Path) -> None:
    """Raise UsageError if runs so far cannot be compared with new ones."""
    before, now = read_before(folder), settings_of(contest)
    for name in [name for name in now if name in before["settings"]]:
        if change := change_since(before["settings"][name], now[name]):
            raise UsageError(
                f"Comparison '{folder.name}' has runs of {name} with other settings: {change}. "
                "Continue it with the same settings, or choose another name with --run."
            )
    machine = before["machine"]
    if machine != describe_machine():
        raise UsageError(
            f"Comparison '{folder.name}' has runs on another machine ({_words(machine)}; this is "
            f"{_words(describe_machine())}), and times of two machines cannot be compared. Choose "
            "another name with --run."
        )


def _words(machine: Mapping[str, Any]) -> str:
    return ", ".join(f"{value_text(value)} {name}" for name, value in machine.items())


def set_aside(run_dir: Path) -> None:
    """Move the folder of a run that did not come to its end out of the way of its next try."""
    if not run_dir.exists():
        return
    names = (run_dir.with_name(f"{run_dir.name}-unfinished-{n}") for n in itertools.count(1))
    run_dir.rename(next(name for name in names if not name.exists()))
