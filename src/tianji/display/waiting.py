"""Sentences for people while something before a run takes long, on standard error."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tianji.display.display import Mode, what_can_be_shown
from tianji.display.stream import say, standard_error


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
def tell_while_slow(
    tell: Callable[[str], None], what: str, period_s: float = 5.0
) -> Iterator[None]:
    """Say every few seconds that something is still going on, from a thread: the block may hang.

    >>> with tell_while_slow(tell, "Trying out CartPole-v1"):
    ...     probe()
    """
    is_over, began_s = threading.Event(), time.monotonic()

    def repeat() -> None:
        while not is_over.wait(period_s):
            tell(f"{what}: no answer for {time.monotonic() - began_s:.0f} s.")

    thread = threading.Thread(target=repeat, name="tell-while-slow", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
