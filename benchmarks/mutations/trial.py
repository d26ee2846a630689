"""Runs the tests of a room in a copy of the tree, with and without a mutation."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import ROOT
from benchmarks.mutations.sites import Site

PASSED, NO_TESTS = 0, 5
FIRST_FAILURE = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Trial:
    """What the tests said: `passed`, `failed`, `timeout` or `no tests`."""

    outcome: str
    seconds: float
    first_failure: str | None = None


class Copy:
    """One commit in a folder of its own, where one mutation at a time is applied."""

    def __init__(self, commit: str, folder: Path) -> None:
        self.folder = folder
        archive = subprocess.run(
            ["git", "archive", commit], cwd=ROOT, check=True, capture_output=True
        ).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(folder, filter="data")
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(folder / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        # A mutation may keep size and time stamp of a file, so the hash decides what is compiled.
        self._python("-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "src")
        imported = self._python("-c", "import tianji; print(tianji.__file__)")
        if not imported.startswith(str(folder)):
            raise RuntimeError(f"the copy's tests would import {imported}")

    def _python(self, *arguments: str) -> str:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=self._environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def run_mutated(self, site: Site, tests: Sequence[str], limit_s: float) -> Trial:
        path = self.folder / site.file
        original = path.read_text()
        path.write_text(site.apply(original))
        try:
            return self.run(tests, limit_s)
        finally:
            path.write_text(original)

    def run(self, tests: Sequence[str], limit_s: float) -> Trial:
        """Run the tests until the first failure."""
        if not tests:
            return Trial("no tests", 0.0)
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", *tests]
        command += ["-p", "no:cacheprovider", "--hypothesis-seed=0"]
        started = time.monotonic()
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            return Trial("timeout", round(time.monotonic() - started, 1))
        finally:
            _end_group(process)
        return read_trial(process.returncode, output, round(time.monotonic() - started, 1))


def read_trial(code: int, output: str, seconds: float) -> Trial:
    """Tell the outcome from pytest's exit code; any failure, also to import, is a failure."""
    if code in (PASSED, NO_TESTS):
        return Trial("passed" if code == PASSED else "no tests", seconds)
    named = FIRST_FAILURE.search(output)
    return Trial("failed", seconds, named.group(1) if named else output.strip()[-200:])


def _end_group(process: subprocess.Popen[str]) -> None:
    """End what the tests left behind; they lead a group of their own."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        process.wait()
