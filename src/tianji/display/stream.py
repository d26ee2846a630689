"""What people read on standard error: streams that never fail, and words while they wait.

A closed terminal or an unread pipe loses words, and does not end a run.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, TextIO, cast

from tianji.raised import is_theirs, place_in_words

_GONE = {errno.EIO, errno.EPIPE}
"""Errors of a write to a closed terminal, or to a pipe without a reader."""

SLOW_S = 5.0
"""Seconds before a slow step is reported, and between two reports."""

Mode = Literal["auto", "live", "plain", "off"]


def what_can_be_shown(mode: Mode) -> Mode:
    """Turn `auto` into `live` on a terminal and into `plain` elsewhere."""
    if mode != "auto":
        return mode
    can_draw = sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    return "live" if can_draw else "plain"


def standard_error() -> TextIO:
    """Standard error, where everything for people goes, as a stream whose writes never fail."""
    return unfailing(sys.stderr)


def say(text: str) -> None:
    """Print a line for people."""
    stream = standard_error()
    stream.write(f"{text}\n")
    stream.flush()


def unfailing(stream: TextIO) -> TextIO:
    """The same stream, but words that cannot be written are dropped."""
    return stream if isinstance(stream, _Unfailing) else cast("TextIO", _Unfailing(stream))


class _Unfailing:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            self._stream.write(text)
        except OSError as error:
            self._drop(error)
        return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._drop(error)

    def _drop(self, error: OSError) -> None:
        """The interpreter flushes at its end, and would exit with 120 where the reader is gone."""
        if error.errno in _GONE:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self._stream.fileno())
            os.close(null)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def tell_progress(mode: Mode = "auto") -> Iterator[Callable[[str], None]]:
    """Show a line that changes on a terminal, lines elsewhere, nothing when the display is off.

    >>> with tell_progress() as tell:
    ...     tell("Measuring actors with 4 environments.")
    """
    shown = what_can_be_shown(mode)
    if shown != "live":
        yield say if shown == "plain" else lambda _text: None
        return
    from rich.console import Console
    from rich.status import Status

    status: list[Status] = []

    def show(text: str) -> None:
        if not status:
            status.append(Status(text, console=Console(file=standard_error(), highlight=False)))
            status[0].start()
        status[0].update(text)

    try:
        yield show
    finally:
        for started in status:
            started.stop()


@contextmanager
def tell_while_slow(tell: Callable[[str], None], what: str) -> Iterator[None]:
    """Say every few seconds that something is still going on, and in which line of Python, from a
    thread: the block may hang.

    >>> with tell_while_slow(tell, "Trying out CartPole-v1"):
    ...     probe()
    """
    is_over, began_s = threading.Event(), time.monotonic()
    slow = threading.get_ident()

    def repeat() -> None:
        while not is_over.wait(SLOW_S):
            passed_s = time.monotonic() - began_s
            tell(f"{what}: no answer for {passed_s:.0f} s, {_place_of(slow)}.")

    thread = threading.Thread(target=repeat, name="tell-while-slow", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _place_of(thread: int) -> str:
    """Return where a thread is now: in the innermost code that is neither Python's own nor ours,
    because that is where to look."""
    innermost = sys._current_frames()[thread]
    frames = [frame for frame, _ in traceback.walk_stack(innermost)]
    frame = next((one for one in frames if is_theirs(one.f_code.co_filename)), innermost)
    return place_in_words(frame.f_code.co_name, frame.f_code.co_filename, frame.f_lineno)
