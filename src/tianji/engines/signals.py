"""Ctrl-C: once asks a run to finish, twice to stop now, three times breaks off."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from tianji.engines.control import Stop


class StopRequest:
    """How urgently a person (or the system, by SIGTERM) wants the run to end.

    `fd` becomes readable when that changes, so that a supervisor can sleep on it.
    """

    def __init__(self) -> None:
        self.level = Stop.NO
        self.fd, self._write_fd = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(self._write_fd, False)

    def ask(self) -> None:
        """The third time breaks off whatever the calling thread is in."""
        if self.level == Stop.NOW:
            raise KeyboardInterrupt
        self.level = Stop.FINISH if self.level == Stop.NO else Stop.NOW
        os.write(self._write_fd, b"!")

    def close(self) -> None:
        os.close(self.fd)
        os.close(self._write_fd)


@contextmanager
def catch_signals() -> Iterator[StopRequest]:
    """Turn SIGINT, SIGTERM and SIGHUP into a StopRequest while the block runs. Only the main
    thread can; elsewhere (a notebook's worker thread, say) signals keep their meaning."""
    request = StopRequest()
    handled = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before: dict[signal.Signals, object] = {}

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        request.ask()

    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, on_signal) for number in handled}
    try:
        yield request
    finally:
        for number, handler in before.items():
            if handler is not None:  # None: not installed from Python, so not ours to put back
                signal.signal(number, handler)  # type: ignore[arg-type] # what signal() gave us
        request.close()
