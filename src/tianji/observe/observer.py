"""Everything that looks at a run, in one place: logs and display, fed by reports and gauges."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tianji.algorithms.interface import Gather
from tianji.algorithms.registry import load_algorithm
from tianji.channels.gauges import Gauges
from tianji.config.machine import read_machine
from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.display.display import Display, Level
from tianji.errors import TianjiError
from tianji.explain.explain import explain, prediction_error
from tianji.observe.run_clock import RunClock
from tianji.observe.run_log import LOST_FILE, METRICS_FILE, RunLog, read_last
from tianji.observe.watch import Watch
from tianji.types import Clock

LEVELS: Mapping[str, Level] = {
    "error": "error",
    "restart": "warning",
    "env_failure": "warning",
    "checkpoint_failed": "warning",
    "folder_lost": "warning",
    "imbalance": "warning",
}
WHY_PERIOD_NS = 2 * 10**9
"""An explanation stands on the screen for so long, so that people can read it."""
OF_THE_OPEN_ROUND = ("waiting_for", "late", "open_s")


class RunObserver:
    """Lives in the engine's process; `tick` costs a clock reading unless a refresh is due."""

    def __init__(
        self,
        config: RunConfig,
        plan: RunPlan,
        run_dir: Path,
        on_built: Callable[[dict[str, Any]], None],
        look_at_folder: Callable[[], str] = lambda: "",
    ) -> None:
        """on_built: told what is known once the network is built. look_at_folder: makes the run's
        folder again where it is gone, and says so (RunFolder.look)."""
        self._engine = config.engine
        cadence = load_algorithm(config.algorithm.name).cadence(config)
        self._gather = cadence if isinstance(cadence, Gather) else None
        self._times = config.times
        self._plan = plan
        self._usable_cores = len(read_machine().cores)
        self._on_built = on_built
        self._look_at_folder = look_at_folder
        self._period_ns = int(config.observe.period_s * 1e9)
        self._display = Display(config, config.observe.display)
        self._wall = RunClock((read_last(run_dir / METRICS_FILE) or {}).get("wall_s") or 0.0)
        self._log = RunLog(run_dir, config, on_problem=self._on_problem)
        self._watch: Watch | None = None
        self._pids: dict[str, int] = {}
        self._settle: Callable[[], None] | None = None
        self._record: dict[str, Any] = {}
        self._evaluation: dict[str, Any] = {}
        """For the next line of metrics."""
        self._restarts = 0
        self._first_step_ns = 0
        self._next_ns = self._next_why_ns = self._looked_ns = 0
        self._why: tuple[str, ...] = ()
        self._shown_tracebacks: set[str] = set()
        """Kinds of reports."""

    def start(self) -> None:
        self._display.start()

    def watch(
        self,
        gauges: Gauges,
        pids: dict[str, int] | None = None,
        now_ns: Clock = time.monotonic_ns,
        settle: Callable[[], None] | None = None,
    ) -> None:
        """Where rates come from, the processes behind the workers, and the clock of both; called at
        every change. Other gauges are those of another engine, which goes on with the run."""
        self._pids = pids or {}
        self._settle = settle
        if self._watch is None or not self._watch.watches(gauges):
            self._first_step_ns = self.first_step_ns()
            self._watch = Watch(gauges, now_ns, gathers=self._gather is not None)
            self._wall.follow(self._watch.first_step_ns, now_ns)

    def use_plan(self, plan: RunPlan) -> None:
        """The run goes on with another plan."""
        self._plan = plan

    def tick(self) -> None:
        now_ns = time.monotonic_ns()
        if now_ns < self._next_ns or self._watch is None:
            return
        self._next_ns = now_ns + self._period_ns
        self._check_folder()
        if now_ns - self._looked_ns >= self._period_ns:  # else the learner's record made us look
            self._look(self._watch)
        self._wall.tick()
        self._show(self._watch, now_ns)

    def _check_folder(self) -> None:
        if text := self._look_at_folder():
            self._log.reopen()
            self.report({"kind": "folder_lost", "role": "supervisor", "text": text})

    def _look(self, watch: Watch) -> None:
        self._looked_ns = time.monotonic_ns()
        if self._settle is not None:
            self._settle()
        watch.look(self._pids)

    def _show(self, watch: Watch, now_ns: int) -> None:
        record = {**self._complete(watch), "wall_s": self._wall.shown_s}
        if self._engine == "local":  # elsewhere a role is silent while others have their turn
            record["silent_s"] = watch.silent_s()
        if now_ns >= self._next_why_ns:
            found = explain(record, self._plan, self._engine)
            if found.critical_path is not None:
                self._next_why_ns = now_ns + WHY_PERIOD_NS
                self._why = tuple(filter(None, (found.sentences[0], found.gain)))
        self._display.update({**record, "why": self._why})

    def report(self, report: Any) -> None:
        """Take a line from a role: a record for the log, or an event for people."""
        kind, role = report["kind"], report.get("role", "")
        if kind == "metrics" and self._watch is not None:
            self._record = {**report["record"], **self._evaluation}
            self._evaluation = {}
            self._wall.set(report["record"].get("wall_s"))
            self._look(self._watch)
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
        if kind == "restored":
            text += self._go_back(report["record"])
        traceback = report.get("traceback", "")
        whole = f"{text}\n{traceback}" if traceback else text
        self._log.event(kind, role, whole)
        if traceback and kind not in self._shown_tracebacks:
            self._shown_tracebacks.add(kind)  # the first one is the cause; others often follow
            text = whole
        self._display.event(f"{role}: {text}", _level(report))

    def _go_back(self, to: Mapping[str, int]) -> str:
        """Take what the learner has lost out of the log; returns what a person should know."""
        moved = self._log.go_back(to["version"], to["env_steps"])
        return f" Its records ({moved}) were moved to {LOST_FILE}." if moved else ""

    def _on_evaluation(self, record: Mapping[str, Any]) -> None:
        self._evaluation = {"evaluation": dict(record)}
        self._record = {**self._record, **self._evaluation}
        text = (
            f"mean return {record['mean_return']:.1f} +- {record['std_return']:.1f} over "
            f"{record['episodes']} episodes of version {record['version']}"
        )
        if record.get("cut_episodes"):
            text += f"; {record['cut_episodes']} were cut at evaluate.cut_after_steps"
        self._log.event("evaluation", "evaluator", text)
        self._display.event(f"evaluator: {text}", "info")

    def _complete(self, watch: Watch) -> dict[str, Any]:
        """The learner's last record with what only this process knows."""
        seen = watch.now()
        return {
            **self._record,
            **seen,
            **self._gathered(seen),
            "usable_cores": self._usable_cores,
            "activity": watch.activities(),
            "restarts": self._restarts,
            "rss_bytes": watch.resident_bytes(),
        }

    def _gathered(self, seen: Mapping[str, Any]) -> dict[str, Any]:
        """How gradients are gathered: the rule, what the buffer knows, what the gauges show."""
        if self._gather is None:
            return {}
        known = {
            "rule": self._gather.rule,
            "num_gradients": self._gather.num_gradients,
            "times": self._times.law,
            "network": self._times.network,
        }
        gather = known | self._record.get("gather", {}) | seen.get("gather", {})
        if self._engine == "virtual":
            gather["discarded_step_share"] = None  # gradients that are dropped are not computed
            gather["late"] = []  # all come when their times say so
        return {"gather": gather}

    @property
    def last_record(self) -> Mapping[str, Any]:
        """What the learner's side said last; all there is when it could not say more."""
        return self._record

    def first_step_ns(self) -> int:
        """Of the whole run, whichever engine made it; 0 before it."""
        now_ns = self._watch.first_step_ns() if self._watch is not None else 0
        return self._first_step_ns or now_ns

    def closing_facts(self) -> dict[str, Any]:
        """What the summary says of why the run was as fast as it was, once it is over."""
        whole = self._watch.whole() if self._watch is not None else {}
        record = {**whole, **self._gathered(whole), "usable_cores": self._usable_cores}
        found, prediction = explain(record, self._plan, self._engine), self._plan.prediction
        facts: dict[str, Any] = {
            "critical_path": found.critical_path,
            "explanation": list(found.sentences),
            "waited_s": whole.get("waited_s", {}),
            **_without_the_open_round(self._gathered(whole)),
        }
        if prediction is not None:
            facts["predicted"] = prediction.model_dump()
            facts["prediction_error"] = prediction_error(prediction, whole.get("rates_per_s", {}))
        return facts

    def _on_problem(self, text: str) -> None:
        self._display.event(text, "warning")

    def close(self) -> None:
        try:
            self._check_folder()  # the summary needs it
        except TianjiError as error:
            self.report({"kind": "error", "role": "supervisor", "text": str(error)})
        if self._watch is not None:
            self._next_why_ns = 0
            self._show(self._watch, time.monotonic_ns())
        self._display.stop()
        self._log.close()


def _without_the_open_round(gathered: Mapping[str, Any]) -> dict[str, Any]:
    """Whom it waits for means nothing when the run is over."""
    return {
        name: {key: value for key, value in group.items() if key not in OF_THE_OPEN_ROUND}
        for name, group in gathered.items()
    }


def _level(report: Mapping[str, Any]) -> Level:
    """An imbalance that is over is good news."""
    is_over = report.get("record", {}).get("is_over", False)
    return "info" if is_over else LEVELS.get(report["kind"], "info")
