"""Ctrl-C: once asks a run to finish, twice to stop now, three times breaks off. SIGTERM does the
same; SIGHUP (the terminal was closed) and SIGUSR1 (Slurm's warning) only ask to finish."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

from tianji.channels.orders import Stop

NOTES = {
    Stop.FINISH: "Finishing the current version and saving. Press Ctrl-C again to stop at once.",
    Stop.NOW: "Stopping at once: what was learned since the last checkpoint is not saved.",
}
TWICE_S = 0.2
"""A signal that comes again within this time is the same request: `timeout` sends its signal to a
process, and then to the whole group of processes."""


class StopRequest:
    """A request to end the run, by a person or by the system (SIGTERM, SIGHUP, SIGUSR1).

    `fd` becomes readable when that changes, so that a supervisor can sleep on it.
    """

    def __init__(self, notes: Mapping[Stop, str] = NOTES) -> None:
        """notes: what a person is told when it is followed, by its urgency."""
        self._notes = notes
        self.level = Stop.NO
        self.fd, self._write_fd = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(self._write_fd, False)

    @property
    def note(self) -> str:
        """Return what a person is told of the present urgency; empty: nothing."""
        return self._notes.get(self.level, "")

    def ask(self) -> None:
        """Ask more urgently than before; the third call interrupts the calling thread."""
        if self.level == Stop.NOW:
            raise KeyboardInterrupt
        self.raise_to(Stop.FINISH if self.level == Stop.NO else Stop.NOW)

    def hang_up(self) -> None:
        """Ask to finish, however often it is called: a terminal that is closed sends SIGHUP from
        the kernel and again from the shell, and nobody is there who could want it more urgently. A
        warning may come from srun and from the batch script."""
        self.raise_to(max(self.level, Stop.FINISH))

    def raise_to(self, level: Stop) -> None:
        """Ask with this urgency."""
        self.level = level
        os.write(self._write_fd, b"!")

    def close(self) -> None:
        os.close(self.fd)
        os.close(self._write_fd)


@contextmanager
def catch_signals(now_s: Callable[[], float] = time.monotonic) -> Iterator[StopRequest]:
    """Turn SIGINT, SIGTERM, SIGHUP and SIGUSR1 into a StopRequest while the block runs. Only the
    main thread can; elsewhere (a notebook's worker thread, say) signals keep their meaning. A
    SIGHUP that is ignored (`nohup tianji train`) stays ignored."""
    request = StopRequest()
    handled = [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        handled.append(signal.SIGHUP)
    before: dict[signal.Signals, object] = {}
    came_s: dict[int, float] = {}

    def on_signal(number: int, _frame: FrameType | None) -> None:
        last_s, came_s[number] = came_s.get(number, -math.inf), now_s()
        if number in (signal.SIGHUP, signal.SIGUSR1):
            request.hang_up()
        elif came_s[number] - last_s > TWICE_S:
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
