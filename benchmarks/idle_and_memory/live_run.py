"""A training run that goes on beside the benchmark, and the processes behind its roles."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.harness import ContestantFailed, tianji_command
from benchmarks.idle_and_memory.processes import command_line, descendants

WORKER_MODULE = "tianji.engines.worker"
NEVER = "100000"  # no return is this high
STOP_LIMIT_S = 60.0


class LiveRun:
    """`with LiveRun("cartpole-ppo") as run:` - it trains until the block ends."""

    def __init__(self, preset: str, *options: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="bench-")
        self._command = tianji_command(
            "train",
            preset,
            *("--target-return", NEVER, "--max-env-steps", str(10**12)),
            *options,
            "--json",
        )

    def __enter__(self) -> LiveRun:
        self._process = subprocess.Popen(
            self._command,
            cwd=self._folder.name,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        self.run_dir = self._wait_for_training()
        self.plan: dict[str, Any] = json.loads((self.run_dir / "plan.json").read_text())
        return self

    def _wait_for_training(self) -> Path:
        """Until the run has written metrics: all roles are up then."""
        deadline = time.monotonic() + STOP_LIMIT_S
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                assert self._process.stderr is not None
                raise ContestantFailed(self._process.stderr.read().decode()[-2000:])
            for metrics in Path(self._folder.name).glob("runs/*/metrics.jsonl"):
                if len(metrics.read_text().splitlines()) > 2:
                    return metrics.parent
            time.sleep(0.1)
        raise ContestantFailed("the run did not begin to train within a minute")

    def pids(self) -> dict[str, int]:
        """Processes by role. The supervisor starts the learner first and the actors in order."""
        supervisor, *children = descendants(self._process.pid)
        workers = sorted(pid for pid in children if WORKER_MODULE in command_line(pid))
        names = ["learner", *(f"actor-{index}" for index in range(self.plan["num_actors"]))]
        return {"supervisor": supervisor, **dict(zip(names, workers, strict=True))}

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.communicate(timeout=STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()  # the workers end with it
            self._process.communicate()
        self._folder.cleanup()


class Paused:
    """`with Paused(pids):` - these processes stand still inside the block."""

    def __init__(self, pids: list[int]) -> None:
        self._pids = pids

    def __enter__(self) -> None:
        for pid in self._pids:
            os.kill(pid, signal.SIGSTOP)

    def __exit__(self, *_: object) -> None:
        for pid in self._pids:
            os.kill(pid, signal.SIGCONT)
