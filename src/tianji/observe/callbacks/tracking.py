"""Tracker: a callback that sends a run to a service, and what such callbacks share.

Takes      records and the summary, from the supervisor's thread
Gives      calls of `log` and `close` in a thread of its own
Waits for  records; nobody waits for a slow service before the end of the run
Unblocked  by on_version and on_end
Stops      when on_end has been called and everything was sent
"""

from __future__ import annotations

import importlib
import json
import queue
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tianji.checkpoint.durable import replace_json
from tianji.errors import UsageError
from tianji.observe.callbacks.interface import Callback, RunHandle
from tianji.records import Metrics, Summary

TRACKERS_FILE = "trackers.json"
"""The run's id in every tracker, so that a resumed run continues there."""
PROJECT = "tianji"
"""Where runs are filed if the environment names no other place."""
MOST_WAITING = 10_000
"""Records that wait for a service at most: those of more than an hour."""


class Tracker(Callback):
    """Sends a run to a service in a thread of its own. Its errors are raised by the next call."""

    def __init__(self) -> None:
        self._due: queue.Queue[Callable[[], None] | None] = queue.Queue(MOST_WAITING)
        self._thread: threading.Thread | None = None
        self._errors: queue.SimpleQueue[Exception] = queue.SimpleQueue()

    def log(self, run: RunHandle, record: Metrics) -> None:
        """Send one record."""
        raise NotImplementedError

    def close(self, run: RunHandle, summary: Summary) -> None:
        """Send the summary and end the run there."""
        raise NotImplementedError

    def on_version(self, run: RunHandle, record: Metrics) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="tracker", daemon=True)
            self._thread.start()
        self._due.put_nowait(partial(self.log, run, record))
        self._raise_first()

    def on_end(self, run: RunHandle, summary: Summary) -> None:
        if self._thread is not None:
            self._due.put(None)
            self._thread.join()
            self._thread = None
        self.close(run, summary)
        self._raise_first()

    def _work(self) -> None:
        while (send := self._due.get()) is not None:
            try:
                send()
            except Exception as error:  # noqa: BLE001 - it is raised in the supervisor's thread
                self._errors.put(error)

    def _raise_first(self) -> None:
        """Raise the oldest error that nobody has seen; one error is one call that failed."""
        if not self._errors.empty():
            raise self._errors.get()


def import_library(name: str, title: str) -> Any:
    """Import the library of a tracker; the extra has its name."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(
            f"Callback '{name}' needs {title}, which is not installed ({error}). Install it with: "
            f"pip install 'tianji[{name}]'"
        ) from error


def kept_id(run_dir: Path, tracker: str) -> str | None:
    """Return the id that the run has in this tracker; None if it is new there."""
    try:
        found = json.loads((run_dir / TRACKERS_FILE).read_bytes()).get(tracker)
    except (OSError, ValueError, AttributeError):
        return None
    return found if isinstance(found, str) else None


def keep_id(run_dir: Path, tracker: str, run_id: str) -> None:
    others = {name: kept_id(run_dir, name) for name in ("wandb", "mlflow")}
    known = {name: kept for name, kept in others.items() if kept is not None}
    replace_json(run_dir / TRACKERS_FILE, {**known, tracker: run_id})


def plain_values(summary: Summary) -> dict[str, float | str]:
    """Return the numbers and words of a summary, without what is not known, and without lists."""
    return {
        name: value
        for name, value in summary.items()
        if isinstance(value, int | float | str) and not isinstance(value, bool)
    }
