"""Finds the folder of a run by its name, and makes a new folder with an unused name."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tianji.errors import UsageError, did_you_mean
from tianji.wording import counted

if TYPE_CHECKING:
    from tianji.config.run import RunConfig

CONFIG_FILE = "config.yaml"
PLAN_FILE = "plan.json"
METRICS_FILE = "metrics.jsonl"
LOCK_FILE = ".lock"
"""The process that trains the run holds a lock on this file."""
RUNS = Path("runs")
SEED_PREFIX = "seed-"
TRIAL_PREFIX = "trial-"
_IN_FOLDERS = (f"{SEED_PREFIX}*", "*-s[0-9]*", f"{TRIAL_PREFIX}*")
"""Runs that share a folder: seeds of one config, runs of a comparison, trials of a sweep."""
_SHOWN = 10


def find_run(name_or_path: str, base: Path = RUNS) -> Path:
    """Return the folder of a run, given its name under `runs/` or its path."""
    for candidate in (base / name_or_path, Path(name_or_path)):
        if (candidate / CONFIG_FILE).is_file():
            return candidate
    if inner := list_inner(base / name_or_path) or list_inner(Path(name_or_path)):
        raise UsageError(
            f"'{name_or_path}' contains {counted(len(inner), 'run')}. Name one of them, such as "
            f"'{name_or_path}/{inner[0]}'."
        )
    if Path(name_or_path).is_dir():
        raise UsageError(f"'{name_or_path}' is not the folder of a run: it has no {CONFIG_FILE}.")
    known = list_runs(base)
    if not known:
        raise UsageError(f"No run '{name_or_path}'. {_no_runs(base)}")
    raise UsageError(
        f"No run '{name_or_path}'.{did_you_mean(name_or_path, known)} {runs_in_words(known, base)}"
    )


def newest_run(base: Path = RUNS) -> str:
    """Return the name of the run that was written to last."""
    known = list_runs(base)
    if not known:
        raise UsageError(_no_runs(base))
    return known[0]


def _no_runs(base: Path) -> str:
    return (
        f"There are no runs under '{base}/' here. Start one with `tianji train`, or give the path "
        "of a run folder."
    )


def runs_in_words(names: Sequence[str], base: Path = RUNS) -> str:
    """Return a sentence with the runs of a folder, from list_runs()."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"Runs under '{base}/', newest first: {', '.join(names[:_SHOWN])}{more}."


def list_inner(folder: Path) -> list[str]:
    """Return the names of the runs that share a folder (_IN_FOLDERS)."""
    return sorted(
        config.parent.name
        for inner in _IN_FOLDERS
        for config in folder.glob(f"{inner}/{CONFIG_FILE}")
    )


def list_runs(base: Path = RUNS) -> list[str]:
    """Return the names of the runs, that written to last first, including `NAME/seed-1`."""
    patterns = (f"*/{CONFIG_FILE}", *(f"*/{inner}/{CONFIG_FILE}" for inner in _IN_FOLDERS))
    folders = [config.parent for pattern in patterns for config in base.glob(pattern)]
    written = {folder: _written_ns(folder) for folder in folders}
    folders.sort(key=written.__getitem__, reverse=True)
    return [str(folder.relative_to(base)) for folder in folders if written[folder]]


def _written_ns(folder: Path) -> int:
    """Return when a run last wrote its settings or a record; 0 if its folder was just deleted.

    A resume writes the settings again, but the run that wrote a record after that is newer.
    """
    times = [0]
    for name in (CONFIG_FILE, METRICS_FILE):
        with contextlib.suppress(OSError):
            times.append((folder / name).stat().st_mtime_ns)
    return max(times)


def new_run_dir(config: RunConfig, base: Path = RUNS) -> Path:
    """Make the folder of a new run."""
    return new_folder(config.run, default_run_name(config), base)


def check_name_is_free(config: RunConfig, base: Path = RUNS) -> None:
    """Refuse a name that is taken before anything is measured. Another run may still be quicker."""
    if config.run is None:
        return
    _check_name(config.run, base)
    if (folder := base / config.run).is_dir():
        raise _is_taken(folder)


def new_seeds_dir(config: RunConfig, num_seeds: int, base: Path = RUNS) -> Path:
    """Make the folder of several runs that differ only in their seed."""
    return new_folder(config.run, f"{_name_without_seed(config)}-{num_seeds}-seeds", base)


def new_folder(name: str | None, stem: str, base: Path) -> Path:
    """Make the folder `name`, or one with an unused name that begins with `stem`.

    If two runs start at the same moment, mkdir decides which one gets the name.
    """
    if name is not None:
        return _make_named(name, base)
    for number in itertools.count(1):
        if _made(folder := _numbered(stem, number, base)):
            return folder
    raise AssertionError("count() does not end")


def numbered(stem: str, base: Path) -> Iterator[Path]:
    """Yield the folders that new_folder() has made for this stem, up to the first unused name."""
    folders = (_numbered(stem, number, base) for number in itertools.count(1))
    return itertools.takewhile(Path.exists, folders)


def _numbered(stem: str, number: int, base: Path) -> Path:
    return base / (stem if number == 1 else f"{stem}-{number}")


def default_run_name(config: RunConfig) -> str:
    """`cartpole-v1-ppo-s1`"""
    return f"{_name_without_seed(config)}-s{config.seed}"


def _name_without_seed(config: RunConfig) -> str:
    """Return environment and algorithm as one name; an algorithm `module:name` is its folder."""
    module, _, name = config.algorithm.name.rpartition(":")
    folder = module.removesuffix(".spec").rpartition(".")[2]
    tasks = " ".join(task.rpartition(":")[2] for task in config.env_name.split(" + "))
    parts = (tasks, folder or name)
    words = [re.sub(r"[^a-z0-9.]+", "-", part.lower()).strip("-.") for part in parts]
    return "-".join(words)


def _check_name(name: str, base: Path) -> None:
    if not name or name in (".", "..") or "/" in name or "\0" in name:
        raise UsageError(
            f"run = {name!r}: must be the name of a folder under '{base}/', not a path."
        )


def _make_named(name: str, base: Path) -> Path:
    _check_name(name, base)
    folder = base / name
    if _made(folder):
        return folder
    if not folder.is_dir():
        raise UsageError(
            f"Cannot make the run folder '{folder}': it is {_what_is_there(folder)}. Choose "
            "another name with --run."
        )
    raise _is_taken(folder)


def _is_taken(folder: Path) -> UsageError:
    name = folder.name
    return UsageError(
        f"Run '{name}' exists. Continue it with `tianji resume {shlex.quote(name)}`, or choose "
        "another name with --run."
    )


def _made(folder: Path) -> bool:
    """Make a folder and its parents; return False if the name exists already."""
    base = folder.parent
    try:
        if os.path.lexists(base) and not base.is_dir():
            raise NotADirectoryError(f"'{base}' is {_what_is_there(base)}. Remove or rename it.")
        base.mkdir(parents=True, exist_ok=True)
        folder.mkdir()
    except FileExistsError:
        return False
    except OSError as error:
        raise UsageError(f"Cannot make the run folder '{folder}': {error}") from error
    return True


def _what_is_there(path: Path) -> str:
    if path.is_symlink():
        return f"a symbolic link to '{path.readlink()}', which does not exist"
    return "a file"
