"""The person's own modules, which other hosts need too: environments, networks, algorithms.

A setting such as `my_games:make_maze` names one. Those that are installed are expected to be
installed on every host; a file or a package beside the command is copied and shipped.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterable
from importlib.machinery import PathFinder
from pathlib import Path

from tianji.config.run import RunConfig

INSTALLED = tuple(Path(sysconfig.get_path(name)) for name in ("purelib", "platlib", "stdlib"))
OWN_PACKAGE = "tianji"


def own_modules(config: RunConfig) -> list[Path]:
    """Return the files and packages that the settings name and that are not installed."""
    named = [*config.tasks, config.model.factory or "", config.algorithm.name]
    tops = dict.fromkeys(text.split(":")[0].split(".")[0] for text in named if ":" in text)
    found = (_location(top) for top in tops if top != OWN_PACKAGE)
    return [path for path in found if path is not None and not _is_installed(path)]


def _location(module: str) -> Path | None:
    spec = PathFinder.find_spec(module, [*sys.path, os.getcwd()])
    if spec is None:
        return None  # whoever needs it says so
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations))).resolve()
    return None if spec.origin is None else Path(spec.origin).resolve()


def _is_installed(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in INSTALLED)


def copy_modules(paths: Iterable[Path], folder: Path) -> None:
    """Copy them to a folder from which they can be imported."""
    skip = shutil.ignore_patterns("__pycache__", ".git", "*.pyc")
    for path in paths:
        if path.is_dir():
            shutil.copytree(path, folder / path.name, ignore=skip)
        else:
            shutil.copy(path, folder / path.name)
