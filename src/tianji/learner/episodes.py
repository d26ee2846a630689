"""Finished episodes, reported to callbacks and to the head of a run with several groups.

The last 100 episodes of the whole run decide about its target, so the head needs those of all
groups in the order of their ends.
"""

from __future__ import annotations

import time

from tianji.channels.reports import Reports
from tianji.reports import EpisodesReport, FinishedEpisodes
from tianji.types import Clock, Episode


class EpisodeReports:
    """Collects a group's episodes and reports them now and then."""

    def __init__(
        self, reports: Reports, period_s: float, now_ns: Clock = time.monotonic_ns
    ) -> None:
        """period_s: a run notices this much later that its target is reached."""
        self._reports = reports
        self._period_ns = int(period_s * 1e9)
        self._now_ns = now_ns
        self._finished: list[Episode] = []
        self._next_ns = 0

    def add(self, episodes: list[Episode]) -> None:
        self._finished += episodes

    def tick(self, is_last: bool = False) -> None:
        """Report if it is time, or the last one. A report without episodes tells that there were
        none."""
        now_ns = self._now_ns()
        if now_ns < self._next_ns and not is_last:
            return
        self._next_ns = now_ns + self._period_ns
        record = FinishedEpisodes(until_ns=now_ns, episodes=[*self._finished])
        self._finished = []
        self._reports(EpisodesReport(kind="episodes", role="learner", record=record))
