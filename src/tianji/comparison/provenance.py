"""Where the figures of a run come from: the machine, the commit and the versions of libraries."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, TypedDict

from tianji.figures.files import describe_machine
from tianji.version import VERSION

COMMA = ", "
"""Between values that differ from run to run."""
_LIBRARIES = ("torch", "gymnasium", "numpy")


class Provenance(TypedDict):
    """What a run was made by, or several, with commas between the values where these differ."""

    machine: Mapping[str, Any]
    commit: str
    versions: Mapping[str, str]


def provenance() -> Provenance:
    """Return the machine, the commit and the versions of what runs here."""
    own = {"tianji": VERSION, "python": platform.python_version()}
    return Provenance(
        machine=describe_machine(),
        commit=package_commit(),
        versions=own | {name: metadata.version(name) for name in _LIBRARIES},
    )


def combine(origins: Sequence[Provenance]) -> Provenance:
    """Return what several runs on one machine were made by."""
    names = dict.fromkeys(name for origin in origins for name in origin["versions"])
    return Provenance(
        machine=origins[-1]["machine"],
        commit=_distinct([origin["commit"] for origin in origins]),
        versions={
            name: _distinct([origin["versions"].get(name, "none") for origin in origins])
            for name in names
        },
    )


def _distinct(values: Sequence[str]) -> str:
    return COMMA.join(dict.fromkeys(values))


def package_commit() -> str:
    """Return the commit of the checkout that this package is part of, with a plus sign if files
    have changed since; `installed` outside of a checkout."""
    folder = Path(__file__).parents[1]

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "__init__.py")  # a wheel may lie inside of a checkout
        changed = git("status", "--porcelain", "--untracked-files=no")
        return git("rev-parse", "--short=12", "HEAD") + "+" * bool(changed)
    except (OSError, subprocess.CalledProcessError):
        return "installed"
