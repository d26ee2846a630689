"""Sentences for people while something takes its time before a run, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tianji.display.display import Mode
from tianji.display.stream import standard_error


@contextmanager
def tell_progress(mode: Mode = "auto") -> Iterator[Callable[[str], None]]:
    """A line that changes on a terminal, lines elsewhere, nothing when the display is off.

    >>> with tell_progress() as tell:
    ...     tell("Measuring actors with 4 environments.")
    """
    if mode == "off":
        yield lambda _text: None
        return
    if mode == "plain" or (mode == "auto" and not sys.stderr.isatty()):
        yield _say
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
        for shown in status:
            shown.stop()


def _say(text: str) -> None:
    stream = standard_error()
    stream.write(f"{text}\n")
    stream.flush()
