"""EnvFailures: counts failures of single environments and reports them, not too often."""

from __future__ import annotations

import time
import traceback

from tianji.channels.gauges import Gauge
from tianji.channels.reports import Reports
from tianji.envs.mending import EnvFailure, in_words
from tianji.records import Event
from tianji.types import Clock

TELL_PERIOD_NS = 60 * 10**9
"""Shortest time between two reports about one actor's environments."""


class EnvFailures:
    """Counts every replaced environment; reports the first, and later ones together."""

    def __init__(
        self,
        role: str,
        num_envs: int,
        gauges: memoryview[int],
        reports: Reports,
        now_ns: Clock = time.monotonic_ns,
    ) -> None:
        self._role = role
        self._num_envs = num_envs
        self._gauges = gauges
        self._reports = reports
        self._now_ns = now_ns
        self._untold = 0
        self._tell_ns: int | None = None
        """Earliest time of the next report; None: nothing was reported yet."""

    def __call__(self, failure: EnvFailure) -> None:
        self._gauges[Gauge.ENV_FAILURES] += 1
        self._untold += 1
        is_first, now_ns = self._tell_ns is None, self._now_ns()
        if self._tell_ns is not None and now_ns < self._tell_ns:
            return
        self._tell_ns = now_ns + TELL_PERIOD_NS
        report = Event(kind="env_failure", role=self._role, text=self._in_words(failure))
        if is_first:
            report["traceback"] = "".join(traceback.format_exception(failure.error))
        self._reports(report)
        self._untold = 0

    def _in_words(self, failure: EnvFailure) -> str:
        total = self._gauges[Gauge.ENV_FAILURES]
        times = f" ({self._untold} failures since the last message)" if self._untold > 1 else ""
        return (
            f"Environment {failure.index} of {self._num_envs} failed: {in_words(failure.error)}. A "
            f"new one took its place and its episode was cut{times}. Failures in all: {total}."
        )
