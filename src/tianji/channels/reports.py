"""Reports: the stream of records from roles to the engine that runs them.

Between processes it is a pipe, one JSON line per report. A report never waits: a supervisor that
hangs must not stop the learner. What the pipe does not take stays in the sender and goes out before
the next report. Of the metrics only the newest record is kept, of all other reports the newest
MAX_WAITING, and the supervisor is told how many are missing.
"""

from __future__ import annotations

import json
import os
import select
import threading
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from tianji.reports import Event, Report

MAX_WAITING = 1000

Reports: TypeAlias = Callable[[Report], None]
"""Takes reports. Never waits."""


class ReportPipe:
    """Reports to the supervisor; callable from several threads."""

    def __init__(self, fd: int, worker: str) -> None:
        self._fd = fd
        self._worker = worker
        self._lock = threading.Lock()  # the checkpoint writer's thread reports too
        self._begun = b""
        """The rest of a line whose beginning is in the pipe."""
        self._waiting: deque[bytes] = deque()
        self._metrics = b""
        """The newest record of metrics, while it waits."""
        self._num_dropped = 0
        os.set_blocking(fd, False)

    def __call__(self, report: Report) -> None:
        line = self._encode(report)
        with self._lock:
            if report["kind"] == "metrics":
                self._metrics = line
            else:
                self._keep(line)
            self._write()

    def flush(self) -> None:
        """Wait until all reports are in the pipe, before this process ends or waits for an answer.

        It waits as long as the supervisor takes, which would not know how the run ended without
        the last report. If the supervisor is gone, this process is ended too.
        """
        with self._lock:
            room = select.poll()  # select() takes no descriptor above 1023
            room.register(self._fd, select.POLLOUT)
            while not self._write():
                room.poll()

    def _encode(self, report: Report) -> bytes:
        return json.dumps({"role": self._worker, **report}, default=float).encode() + b"\n"

    def _keep(self, line: bytes) -> None:
        if len(self._waiting) == MAX_WAITING:
            self._waiting.popleft()
            self._num_dropped += 1
        self._waiting.append(line)

    def _write(self) -> bool:
        """Write what the pipe takes, the oldest first; return whether that was all."""
        while data := self._begun or self._next_line():
            try:
                self._begun = data[os.write(self._fd, data) :]
            except BlockingIOError:
                self._begun = data
                return False
        return True

    def _next_line(self) -> bytes:
        if self._num_dropped:
            count, self._num_dropped = self._num_dropped, 0
            text = f"The supervisor did not read for a while: {count} older reports are missing."
            return self._encode(Event(kind="note", text=text))
        if self._waiting:
            return self._waiting.popleft()
        line, self._metrics = self._metrics, b""
        return line
