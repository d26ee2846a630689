"""Everything that looks at a run, in one place: logs and display, fed by reports and gauges."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tianji.channels.gauges import Gauges
from tianji.config.run import RunConfig
from tianji.observe.display import Display, Level
from tianji.observe.run_log import RunLog
from tianji.observe.watch import Watch, resident_bytes

LEVELS: Mapping[str, Level] = {
    "error": "error",
    "restart": "warning",
    "checkpoint_failed": "warning",
}


class RunObserver:
    """Lives in the engine's process; `tick` costs a clock reading unless a refresh is due."""

    def __init__(
        self, config: RunConfig, run_dir: Path, on_built: Callable[[dict[str, Any]], None]
    ) -> None:
        """on_built: told what is known once the network is built."""
        self._on_built = on_built
        self._period_ns = int(config.observe.period_s * 1e9)
        self._display = Display(config, config.observe.display)
        self._log = RunLog(run_dir, config, on_problem=self._on_problem)
        self._watch: Watch | None = None
        self._pids: dict[str, int] = {}
        self._record: dict[str, Any] = {}
        self._evaluation: dict[str, Any] = {}
        """For the next line of metrics."""
        self._restarts = 0
        self._next_ns = 0
        self._has_shown_traceback = False

    def start(self) -> None:
        self._display.start()

    def watch(self, gauges: Gauges, pids: dict[str, int] | None = None) -> None:
        """Where rates come from, and the processes behind the roles; called at every change."""
        self._pids = pids or {}
        if self._watch is None:
            self._watch = Watch(gauges)

    def tick(self) -> None:
        now_ns = time.monotonic_ns()
        if now_ns < self._next_ns or self._watch is None:
            return
        self._next_ns = now_ns + self._period_ns
        self._watch.look()
        self._display.update(self._complete(self._watch))

    def report(self, report: Any) -> None:
        """Take a line from a role: a record for the log, or an event for people."""
        kind, role = report["kind"], report.get("role", "")
        if kind == "metrics" and self._watch is not None:
            self._record = {**report["record"], **self._evaluation}
            self._evaluation = {}
            self._watch.look()
            self._log.metrics(self._complete(self._watch))
            return
        if kind == "built":
            self._on_built(report["record"])
            return
        if kind == "evaluation":
            self._on_evaluation(report["record"])
            return
        self._restarts += kind == "restart"
        text = report["text"]
        traceback = report.get("traceback", "")
        self._log.event(kind, role, traceback or text)
        if traceback and not self._has_shown_traceback:
            self._has_shown_traceback = True  # the first one is the cause; others often follow
            text = f"{text}\n{traceback}"
        self._display.event(f"{role}: {text}", LEVELS.get(kind, "info"))

    def _on_evaluation(self, record: Mapping[str, Any]) -> None:
        self._evaluation = {"evaluation": dict(record)}
        self._record = {**self._record, **self._evaluation}
        text = (
            f"mean return {record['mean_return']:.1f} +- {record['std_return']:.1f} over "
            f"{record['episodes']} episodes of version {record['version']}"
        )
        self._log.event("evaluation", "evaluator", text)
        self._display.event(f"evaluator: {text}", "info")

    def _complete(self, watch: Watch) -> dict[str, Any]:
        """The learner's last record with what only this process knows."""
        memory = {name: resident_bytes(pid) for name, pid in self._pids.items()}
        return {
            **self._record,
            **watch.now(),
            "activity": watch.activities(),
            "restarts": self._restarts,
            "rss_bytes": {name: size for name, size in memory.items() if size is not None},
        }

    @property
    def last_record(self) -> Mapping[str, Any]:
        """What the learner's side said last; all there is when it could not say more."""
        return self._record

    def first_step_ns(self) -> int:
        return self._watch.first_step_ns() if self._watch is not None else 0

    def _on_problem(self, text: str) -> None:
        self._display.event(text, "warning")

    def close(self) -> None:
        if self._watch is not None:
            self._display.update(self._complete(self._watch))
        self._display.stop()
        self._log.close()
