"""`tianji train` in processes of their own, as a person starts it, for the data of figures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tianji.errors import TianjiError


@contextmanager
def only_on(cores: Sequence[int]) -> Iterator[None]:
    """Let this thread, and the processes that it starts, use only these cores meanwhile."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


class CommandRun(NamedTuple):
    """What a command left: its summary, and the records of `metrics.jsonl`."""

    summary: dict[str, Any]
    records: list[dict[str, Any]]


def train_on(cores: Sequence[int], words: Sequence[str], limit_s: float) -> CommandRun:
    """Run `tianji train` with these words on these cores, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="tianji-figure-") as folder:
        done = subprocess.run(
            [*words_on(cores), sys.executable, "-m", "tianji", "train", *words, "--run", "run",
             "--observe.display", "off", "--no-tensorboard"],
            cwd=folder, env=environment(), capture_output=True, text=True, timeout=limit_s,
            check=False,
        )  # fmt: skip
        if done.returncode:
            tail = "\n".join(done.stderr.splitlines()[-15:])
            raise TianjiError(
                f"tianji train {' '.join(words)} ended with {done.returncode}:\n{tail}"
            )
        run_dir = Path(folder) / "runs" / "run"
        summary = json.loads((run_dir / "summary.json").read_text())
        lines = (run_dir / "metrics.jsonl").read_text().splitlines()
    return CommandRun(summary, [json.loads(line) for line in lines])


def environment() -> dict[str, str]:
    """Return an environment in which the same tianji is found from any folder."""
    paths = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def words_on(cores: Sequence[int] | None) -> list[str]:
    """Return the words that start a command on these cores."""
    if cores is None:
        return []
    listed = ",".join(map(str, cores))
    code = (
        "import os, sys; os.sched_setaffinity(0, map(int, sys.argv[1].split(','))); "
        "os.execv(sys.argv[2], sys.argv[2:])"
    )
    return [sys.executable, "-c", code, listed]
