"""Real runs by the command line, watched and disturbed from outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil

DEADLINE_S = 120
WORKERS = {"tianji.engines.worker", "tianji.planning.measure.measuring_process"}
SMALL = [
    "--num-envs", "4", "--unroll-length", "8", "--observe.period-s", "0.05",
    "--no-tensorboard", "--checkpoint.period-s", "0.2", "--minibatch-size", "16",
    "--epochs", "2", "--run", "run", "--algorithm", "ppo", "--plan.source", "rule",
]  # fmt: skip
WITHOUT_CURVE = """
import sys
from tianji.cli.main import main
from tianji.display import curve

curve.draw_curve = lambda _run_dir: None
sys.exit(main())
"""
"""The command without a picture at its end, which would cost as much as a worker's start."""
FOREVER = ["--max-env-steps", "100000000", "--target-return", "none"]
TIANJI = (sys.executable, "-m", "tianji")
STARTED: list[Command] = []
"""The commands of the test that runs."""


def kill_the_rest() -> None:
    """End what a test that failed has left running; workers die with their supervisor."""
    for command in STARTED:
        if command.process.poll() is None:
            command.process.kill()
    STARTED.clear()


class Command:
    """`tianji ...` in a folder, as a process."""

    def __init__(
        self,
        folder: Path,
        *words: str,
        prefix: tuple[str, ...] = (),
        program: tuple[str, ...] = TIANJI,
        environ: dict[str, str] | None = None,
    ) -> None:
        """environ: variables beside those of this process."""
        self.folder = folder
        self.run_dir = folder / "runs" / "run"
        STARTED.append(self)
        if program == TIANJI and not prefix:  # mpirun's are known by name
            program = (sys.executable, "-c", WITHOUT_CURVE)
        self.process = subprocess.Popen(
            [*prefix, *program, *words],
            cwd=folder,
            env={**os.environ, **(environ or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def workers(self) -> dict[str, psutil.Process]:
        """The worker processes by name."""
        found = {}
        for child in psutil.Process(self.process.pid).children(recursive=True):
            try:
                words = child.cmdline()
            except psutil.NoSuchProcess:
                continue
            if "tianji.engines.worker" in words:
                found[words[-1]] = child
        return found

    def records(self) -> list[dict]:
        return whole_lines(self.run_dir / "metrics.jsonl")

    def events(self) -> list[dict]:
        return whole_lines(self.run_dir / "events.jsonl")

    def version(self) -> int:
        """The last that the run told of."""
        records = self.records()
        return records[-1]["version"] if records else 0

    def wait_for(self, condition, what: str):
        """Until the condition gives something true; the run must not end before."""
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            if found := condition():
                return found
            assert self.process.poll() is None, f"ended before {what}: {self.process.stderr.read()}"
            time.sleep(0.02)
        raise AssertionError(f"no {what} within {DEADLINE_S} s")

    def wait_for_version(self, version: int) -> None:
        def reached() -> bool:
            return any(record["version"] >= version for record in self.records())

        self.wait_for(reached, f"version {version}")

    def finish(self, after_s: float = 0.0) -> tuple[int, str, str]:
        """Exit code, standard output, standard error; no worker may be left. after_s: how long it
        was told to take."""
        out, err = self.process.communicate(timeout=after_s + DEADLINE_S)
        assert_nothing_is_left(self.folder)
        return self.process.returncode, out, err

    def summary(self) -> dict:
        return json.loads((self.run_dir / "summary.json").read_text())


def groups_that_work(command: Command) -> set[int]:
    """The groups that have made steps between the last two records."""
    records = command.records()
    if len(records) < 2:
        return set()
    before, after = (
        {figures["group"]: figures["env_steps"] for figures in record["groups"]}
        for record in records[-2:]
    )
    return {group for group, steps in after.items() if steps > before.get(group, 0)}


def whole_lines(path: Path) -> list[dict]:
    """Of a file that may not be there yet, and whose last line may be half written."""
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}\n")]


def tianji_processes(folder: Path) -> list[psutil.Process]:
    """Processes of TianJi that work in this folder."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        try:
            words = process.info["cmdline"] or []
            if WORKERS.intersection(words) and process.cwd() == str(folder):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return [p for p in found if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


def assert_nothing_is_left(folder: Path) -> None:
    """No process, and so no shared memory either: segments are memfds, gone with their holders."""
    deadline = time.monotonic() + DEADLINE_S
    while tianji_processes(folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert tianji_processes(folder) == []
    assert not [p.name for p in Path("/dev/shm").glob("*tianji*")]
