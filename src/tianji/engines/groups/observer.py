"""GroupObserver: passes on what the engine of one group tells."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TypeAlias

from tianji.channels.gauges import Gauges
from tianji.reports import Report
from tianji.types import Clock

Take: TypeAlias = Callable[[Report], None]
WatchGroup: TypeAlias = Callable[[Gauges, Mapping[str, int]], None]


class GroupObserver:
    """Passes on what the engine of one group tells. The head looks by itself, so that a tick
    needs nothing."""

    def __init__(self, report: Take, watch: WatchGroup) -> None:
        self._report = report
        self._watch = watch

    def report(self, report: Report) -> None:
        self._report(report)

    def watch(
        self,
        gauges: Gauges,
        pids: dict[str, int] | None = None,
        now_ns: Clock = time.monotonic_ns,
        settle: Callable[[], None] | None = None,
    ) -> None:
        self._watch(gauges, pids or {})

    def tick(self) -> None:
        """Do nothing."""
