"""Agent: runs a group on its host, as the local engine does, and tells its head about it.

Takes      an order with config and plan, stops
Gives      reports, gauges, and how the group ended, when it is asked
Waits for  nothing
Stops      with its group, or with its process
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from tianji.channels.gauges import Gauges
from tianji.channels.orders import Stop
from tianji.engines.agents.messages import Answer, GroupOrder, to_bytes
from tianji.engines.interface import Outcome
from tianji.engines.local import LocalEngine
from tianji.engines.signals import StopRequest
from tianji.programs.program import program_for
from tianji.records import Report
from tianji.types import Clock


class Agent:
    """Its methods may be called by several threads at a time."""

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._reports: list[Report] = []
        self._outcome: Outcome | None = None
        self._gauges: Gauges | None = None
        self._stop = StopRequest()

    def start(self, order: str) -> None:
        """Start the group of a GroupOrder; return when its engine is built."""
        given = GroupOrder.decode(order)
        spec = given.to_spec()
        engine = LocalEngine(spec, program_for(spec.config, spec.plan), self)
        run = threading.Thread(target=self._run, args=(engine, given.resume), daemon=True)
        run.start()

    def _run(self, engine: LocalEngine, resume: bool) -> None:
        try:
            outcome = engine.run(self._stop, resume)
        except Exception as error:  # noqa: BLE001 - the head hears of it
            cause = f"{type(error).__name__}: {error}"
            outcome = Outcome(because="failed", record=None, restarts=0, first_cause=cause)
        with self._news:
            self._outcome = outcome
            self._news.notify_all()

    def poll(self, timeout_s: float) -> tuple[str, bytes]:
        """Return an encoded Answer, at the latest after so many seconds."""
        with self._news:
            self._news.wait_for(lambda: self._reports or self._outcome, timeout_s)
            reports, self._reports = self._reports, []
            gauges = b"" if self._gauges is None else to_bytes(self._gauges)
            return Answer(reports, gauges, time.monotonic_ns(), self._outcome).encode()

    def stop(self, level: int) -> None:
        """Ask the group to end, as urgently as this Stop says."""
        self._stop.ask_for(Stop(level))

    # The observer of the engine.

    def report(self, report: Report) -> None:
        with self._news:
            self._reports.append(report)
            self._news.notify_all()

    def watch(
        self,
        gauges: Gauges,
        pids: dict[str, int] | None = None,
        now_ns: Clock = time.monotonic_ns,
        settle: Callable[[], None] | None = None,
    ) -> None:
        self._gauges = gauges

    def tick(self) -> None:
        """The head asks for gauges when it wants them."""
