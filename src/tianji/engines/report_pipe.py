"""The pipe from a worker to the supervisor, one JSON line per report.

A report never waits: a supervisor that hangs must not stop the learner. What the pipe does not take
stays here and goes out before the next report. Only the newest record of metrics is kept; of all
else the newest MAX_WAITING lines, and the supervisor is told how many are missing.
"""

from __future__ import annotations

import json
import os
import select
import threading
from collections import deque
from typing import Any

MAX_WAITING = 1000


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

    def __call__(self, report: Any) -> None:
        line = self._encode(report)
        with self._lock:
            if report.get("kind") == "metrics":
                self._metrics = line
            else:
                self._keep(line)
            self._write()

    def flush(self) -> None:
        """Wait until all reports are in the pipe: before this process ends, or waits for an answer.

        However long the supervisor takes: without the last report it would not know how the run
        ended. If it is gone, this process is ended too.
        """
        with self._lock:
            room = select.poll()  # select() takes no descriptor above 1023
            room.register(self._fd, select.POLLOUT)
            while not self._write():
                room.poll()

    def _encode(self, report: Any) -> bytes:
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
            return self._encode({"kind": "note", "text": text})
        if self._waiting:
            return self._waiting.popleft()
        line, self._metrics = self._metrics, b""
        return line
