"""One of several runs, seen from the process that starts them all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tianji.config.run import RunConfig
from tianji.observe.run_log import last_metrics
from tianji.observe.summary import build_summary, read_summary
from tianji.records import Metrics, Summary, SummaryFacts


class ChildRun:
    """Its process and its folder. `start` may be called once."""

    def __init__(self, config: RunConfig, base: Path, label: str) -> None:
        """config: names the run's folder under `base`. label: what people know the run by."""
        assert config.run is not None
        self.config = config
        self.label = label
        self.folder = base / config.run
        self.log = base / f"{config.run}.log"
        """The output of the run, which has no terminal of its own."""
        self._base = base
        self._process: subprocess.Popen[bytes] | None = None
        self._was_asked_to_stop = False

    def start(self, cores: tuple[int, ...]) -> None:
        start = {"config": self.config.model_dump(mode="json"), "base": str(self._base),
                 "cores": cores, "parent": os.getpid()}  # fmt: skip
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tianji.seeds.child"],
                stdin=subprocess.PIPE, stdout=log, stderr=log,
                start_new_session=True,  # a terminal's Ctrl-C reaches the parent alone
            )  # fmt: skip
        assert self._process.stdin is not None
        with suppress(BrokenPipeError), self._process.stdin as pipe:  # it died: its log says why
            pipe.write(json.dumps(start).encode())

    @property
    def is_started(self) -> bool:
        return self._process is not None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def ask_to_stop(self) -> None:
        """Act as one Ctrl-C: the first lets the run finish and save, the second stops it."""
        if self._process is not None and self.is_running:
            self._was_asked_to_stop = True
            self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def record(self) -> Metrics | None:
        """Return the newest record of the run; None before the first."""
        return last_metrics(self.folder)

    def summary(self) -> Summary:
        """Return what the ended run did, even if it could not write a summary itself."""
        assert self._process is not None and not self.is_running
        found = read_summary(self.folder)
        if found is not None:
            return found
        facts: SummaryFacts = {
            "stopped_because": "interrupted" if self._was_asked_to_stop else "failed",
            "first_cause": self.last_line() or f"ended with exit code {self._process.returncode}",
        }
        return build_summary(self.config, self.folder, facts, self.record())

    def last_line(self) -> str:
        """Return what the run printed last; empty before that."""
        lines = self.log.read_text(errors="replace").split("\n") if self.log.exists() else []
        return next((line.strip() for line in reversed(lines) if line.strip()), "")
