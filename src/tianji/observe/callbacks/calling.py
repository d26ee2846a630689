"""Calls the callbacks of a run: one thread, in order, and never an exception out of here.

Takes      records, episodes and checkpoints, from any thread
Gives      calls of callbacks; reports of those that raise
Waits for  the callbacks
Unblocked  by `make`, which the engine's thread calls often
Stops      with `end`
"""

from __future__ import annotations

import queue
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tianji.observe.callbacks.interface import Callback, RunHandle
from tianji.observe.callbacks.load import NamedCallback
from tianji.observe.callbacks.secrets import without_secrets
from tianji.raised import error_in_words
from tianji.records import Metrics, Summary
from tianji.reports import CheckpointRecord, Event, Report
from tianji.types import Episode

GOES_ON = "Training goes on, and further errors of this callback are only counted."


class CallbackCalls:
    """Keeps what callbacks are to be told until the engine's thread has time for them.

    A callback that raises is called again: a tracker may only have lost its server for a moment.
    """

    def __init__(
        self,
        callbacks: Sequence[NamedCallback],
        run: RunHandle,
        report: Callable[[Report], None],
    ) -> None:
        """report: takes what people should know."""
        self.run = run
        self._callbacks = tuple(callbacks)
        self._report = report
        self._due: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        """Methods with what they are called with."""
        self._errors: Counter[str] = Counter()
        self._told_stop = False

    @property
    def num_errors(self) -> int:
        return self._errors.total()

    def version(self, record: Metrics) -> None:
        self._put("on_version", record)

    def episodes(self, episodes: Iterable[Episode]) -> None:
        for episode in episodes:
            self._put("on_episode", episode)

    def checkpoint(self, record: CheckpointRecord) -> None:
        self._put("on_checkpoint", record)

    def _put(self, method: str, told: Any) -> None:
        if self._callbacks:
            self._due.put((method, told))

    def make(self) -> None:
        """Make the calls that are due."""
        while not self._due.empty():
            method, told = self._due.get()
            for one in self._callbacks:
                self._call(one, method, told)

    def end(self, summary: Summary) -> None:
        """Make the last calls, and say how many failed."""
        self.make()
        for one in self._callbacks:
            self._call(one, "on_end", summary)
        for name, count in self._errors.items():
            if count > 1:
                self._tell(name, "note", f"{count} of its calls raised an exception.")

    def _call(self, one: NamedCallback, method: str, told: Any) -> None:
        call = getattr(one.callback, method, None)
        if call is None:
            return
        try:
            call(self.run, told)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it is somebody else's code: told and counted
            self._errors[one.name] += 1
            if self._errors[one.name] == 1:
                text = f"{method} raised {error_in_words(error)}. {GOES_ON}"
                self._tell(one.name, "callback_failed", text, traceback.format_exc())
        if self.run.stop_reason is not None and not self._told_stop:
            self._told_stop = True
            self._tell(one.name, "note", f"stops the run: {self.run.stop_reason}")

    def _tell(self, name: str, kind: Any, text: str, details: str = "") -> None:
        event = Event(kind=kind, role=f"callback {name}", text=without_secrets(text))
        if details:
            event["traceback"] = without_secrets(details)
        self._report(event)


def needs_episodes(callbacks: Iterable[NamedCallback]) -> bool:
    """Return whether one of them does anything with episodes; else the learner need not report
    them."""
    methods = (getattr(type(one.callback), "on_episode", None) for one in callbacks)
    return any(method not in (None, Callback.on_episode) for method in methods)
