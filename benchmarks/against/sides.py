"""The two trees: this one, and another commit in a worktree of its own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import ROOT


@dataclass(frozen=True)
class Side:
    """One source tree, run by the same interpreter as the other."""

    name: str
    src: Path
    cache: Path

    @property
    def variables(self) -> dict[str, str]:
        """The environment of its commands.

        Each side keeps profiles in a folder of its own, so that no plan depends on the other's.
        """
        return {
            "PYTHONPATH": os.pathsep.join((str(self.src), str(ROOT))),
            "XDG_CACHE_HOME": str(self.cache),
        }

    def check(self) -> None:
        """Fail if a command of this side would import another tree."""
        imported = subprocess.run(
            [sys.executable, "-c", "import tianji; print(tianji.__file__)"],
            cwd=tempfile.gettempdir(),
            env={**os.environ, **self.variables},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        if not Path(imported).is_relative_to(self.src):
            raise RuntimeError(f"{self.name}: {imported} is imported, not {self.src}")


@contextlib.contextmanager
def both_sides(commit: str) -> Iterator[tuple[Side, Side]]:
    """Make the other tree, and remove it at the end."""
    with tempfile.TemporaryDirectory(prefix="against-") as scratch:
        folder = Path(scratch)
        tree = folder / "tree"
        _git("worktree", "add", "--quiet", "--detach", str(tree), commit)
        try:
            sides = (
                Side("this tree", ROOT / "src", folder / "cache-this"),
                Side("other", tree / "src", folder / "cache-other"),
            )
            for side in sides:
                side.cache.mkdir()
                side.check()
            yield sides
        finally:
            _git("worktree", "remove", "--force", str(tree))


def resolve_commit(name: str) -> str:
    """Return the short form of a commit; a name that git does not know raises ValueError."""
    try:
        return _git("rev-parse", "--short=12", "--verify", "--quiet", f"{name}^{{commit}}")
    except subprocess.CalledProcessError:
        raise ValueError(f"git knows no commit {name!r}; give a hash, a tag or a branch") from None


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()
