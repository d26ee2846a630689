"""The observer of a run: takes reports and gauges, writes the logs, feeds the screen."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, cast

from tianji.channels.gauges import Gauges
from tianji.checkpoint.durable import to_plain
from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.devices.nvml import busy_share
from tianji.errors import TianjiError
from tianji.observe.callbacks.calling import CallbackCalls
from tianji.observe.callbacks.interface import RunHandle
from tianji.observe.callbacks.load import NamedCallback
from tianji.observe.run_clock import RunClock
from tianji.observe.run_log import LOST_FILE, RunLog, last_metrics
from tianji.observe.tracebacks import says_more
from tianji.observe.watch import Seen, Watch
from tianji.records import (
    NO_METRICS,
    NO_ROUNDS,
    NOTHING_LEARNED,
    Evaluation,
    Gathering,
    GatherRule,
    LearnerMetrics,
    Level,
    Metrics,
)
from tianji.reports import BoardBytes, EventKind, Report, RestorePoint
from tianji.types import Clock, Episode
from tianji.wording import counted

LEVELS: dict[EventKind, Level] = {
    "note": "info",
    "checkpoint_failed": "warning",
    "callback_failed": "warning",
    "env_failure": "warning",
    "folder_lost": "warning",
    "restart": "warning",
    "silent": "warning",
    "error": "error",
}


class Screen(Protocol):
    """What a person sees of a run."""

    def start(self) -> None: ...
    def update(self, record: Metrics) -> None: ...
    def event(self, text: str, level: Level) -> None: ...
    def stop(self, whole: Metrics) -> None: ...


class RunObserver:
    """Lives in the engine's process; `tick` costs a clock reading unless a refresh is due."""

    def __init__(
        self,
        config: RunConfig,
        run_dir: Path,
        screen: Screen,
        gather: GatherRule | None,
        on_built: Callable[[BoardBytes], None],
        count_cores: Callable[[], int],
        look_at_folder: Callable[[], str] = lambda: "",
        plan: RunPlan | None = None,
        callbacks: Sequence[NamedCallback] = (),
    ) -> None:
        """gather: the rule, of a run that gathers gradients. on_built: called once the network is
        built. count_cores: counts the cores that the run may use, on all its hosts.
        look_at_folder: makes the run's folder again if it is gone, and says so. plan: says which
        GPU the run uses, and which actors share a thread."""
        self._engine = config.engine
        self._screen = screen
        self._gather = gather
        self._count_cores = count_cores
        self._on_built = on_built
        self._look_at_folder = look_at_folder
        self._period_ns = int(config.observe.period_s * 1e9)
        before = last_metrics(run_dir)
        self._wall = RunClock(before["wall_s"] if before is not None else 0.0)
        self._steps_before = before["env_steps"] if before is not None else 0
        """Environment steps of earlier sessions, one that was killed included."""
        self._log = RunLog(run_dir, config, on_problem=lambda text: screen.event(text, "warning"))
        self._watch: Watch | None = None
        self._pids: dict[str, int] = {}
        self._settle: Callable[[], None] | None = None
        self.last_record: LearnerMetrics | None = None
        """The newest record of the learner's side."""
        self.first_env_failure: str | None = None
        """What was told of the first environment that failed."""
        self.last_failed_checkpoint: str | None = None
        """What was told of the last checkpoint that could not be written."""
        self._evaluation: dict[str, Evaluation] = {}
        self._unlogged_evaluation = False
        self._restarts = self._learner_restarts = self._actor_restarts = 0
        self._first_step_ns = 0
        self._next_ns = self._looked_ns = 0
        self._shown_tracebacks = {"silent"}
        """Kinds of events whose next tracebacks are for the log alone. The stacks of a process that
        hangs are long, and the event says where it hangs."""
        self._gpu: int | None = None
        if plan is not None and plan.device != "cpu":
            self._gpu = int(plan.device.partition(":")[2])
        self._gpu_shares: list[float] = []
        """Shares of time in which the GPU was busy, one for each look."""
        self.callbacks = CallbackCalls(callbacks, RunHandle(config, run_dir), self.report)
        self._actors_per_thread = plan.actors_per_worker if plan is not None else 1

    def start(self) -> None:
        self._screen.start()

    def watch(
        self,
        gauges: Gauges,
        pids: dict[str, int] | None = None,
        now_ns: Clock = time.monotonic_ns,
        settle: Callable[[], None] | None = None,
    ) -> None:
        """Take the gauges, the processes behind the workers and the clock of both; called at every
        change. Other gauges belong to another engine, which continues the run."""
        self._pids = pids or {}
        self._settle = settle
        if self._watch is None or not self._watch.watches(gauges):
            self._first_step_ns = self.first_step_ns()
            self._watch = Watch(gauges, now_ns)
            self._wall.follow(self._watch.first_step_ns, now_ns)

    def tick(self) -> None:
        self.callbacks.make()
        now_ns = time.monotonic_ns()
        if now_ns < self._next_ns or self._watch is None:
            return
        self._next_ns = now_ns + self._period_ns
        self._check_folder()
        if now_ns - self._looked_ns >= self._period_ns:  # else the learner's record made us look
            self._look(self._watch)
        self._wall.tick()
        self._show(self._watch)

    def _check_folder(self) -> None:
        if text := self._look_at_folder():
            self._log.reopen()
            self.report({"kind": "folder_lost", "role": "supervisor", "text": text})

    def _look(self, watch: Watch) -> None:
        self._looked_ns = time.monotonic_ns()
        if self._settle is not None:
            self._settle()
        watch.look(self._pids)
        if self._gpu is not None and watch.first_step_ns():
            share = busy_share(self._gpu)
            self._gpu_shares += () if share is None else (share,)

    def _show(self, watch: Watch) -> None:
        record = self._complete(watch, watch.now())
        record["wall_s"] = self._wall.shown_s
        if self._engine == "local":  # elsewhere a role is silent while others have their turn
            record["silent_s"] = watch.silent_s()
        self._screen.update(record)

    def report(self, report: Report) -> None:
        """Take a report of a role: a record for the log, or an event for people."""
        level: Level
        if report["kind"] == "metrics":
            self._on_metrics(report["record"])
        elif report["kind"] == "built":
            self._on_built(report["record"])
        elif report["kind"] == "evaluation":
            self._on_evaluation(report["record"])
        elif report["kind"] == "restored":
            lost = self._go_back(report["record"])
            self._tell("restored", report["role"], report["text"] + lost)
        elif report["kind"] == "imbalance":
            level = "info" if report["record"]["is_over"] else "warning"
            self._tell("imbalance", report["role"], report["text"], level)
        elif report["kind"] == "episodes":
            self.callbacks.episodes(Episode(*one) for one in report["record"]["episodes"])
        elif report["kind"] == "checkpoint_written":
            self._tell(report["kind"], report["role"], report["text"])
            self.callbacks.checkpoint(report["record"])
        elif report["kind"] != "done":
            if report["kind"] == "restart":
                self._restarts += 1
                self._learner_restarts += report.get("stops_learner", False)
                self._actor_restarts += report.get("stops_actors", False)
            if report["kind"] == "env_failure":
                self.first_env_failure = self.first_env_failure or report["text"]
            if report["kind"] == "checkpoint_failed":
                self.last_failed_checkpoint = report["text"]
            traceback, level = report.get("traceback", ""), LEVELS[report["kind"]]
            self._tell(report["kind"], report["role"], report["text"], level, traceback)

    def _go_back(self, to: RestorePoint) -> str:
        """Move the records of what is lost, and return sentences about it."""
        moved = self._log.go_back(to["version"], to["env_steps"])
        if not moved:
            return ""
        told = f" Its records ({moved}) were moved to {LOST_FILE}."
        newest = self.last_record
        reached = self._steps_before if newest is None else newest["env_steps"]
        lost = reached - max(to["env_steps"], 0)
        return f" That is at least {counted(lost, 'environment step')}.{told}" if lost > 0 else told

    def _tell(
        self, kind: str, role: str, text: str, level: Level = "info", traceback: str = ""
    ) -> None:
        whole = f"{text}\n{traceback}" if traceback else text
        self._log.event(kind, role, whole)
        if traceback and kind not in self._shown_tracebacks and says_more(traceback):
            self._shown_tracebacks.add(kind)  # the first one is the cause; others often follow
            text = whole
        self._screen.event(f"{role}: {text}", level)

    def _on_metrics(self, record: LearnerMetrics) -> None:
        if self._watch is None:
            return
        self.last_record = cast("LearnerMetrics", to_plain(record))
        if not self._unlogged_evaluation:
            self._evaluation = {}
        self._unlogged_evaluation = False
        self._wall.set(record["wall_s"])
        self._look(self._watch)
        whole = self._complete(self._watch, self._watch.now())
        self._log.metrics(whole)
        self.callbacks.version(whole)

    def _on_evaluation(self, record: Evaluation) -> None:
        self._evaluation, self._unlogged_evaluation = {"evaluation": record}, True
        text = (
            f"mean return {record['mean_return']:.1f} +- {record['std_return']:.1f} over "
            f"{record['episodes']} episodes of version {record['version']}"
        )
        if record["cut_episodes"]:
            text += f"; {record['cut_episodes']} were cut at evaluate.cut_after_steps"
        self._tell("evaluation", "evaluator", text)

    def _complete(self, watch: Watch, seen: Seen) -> Metrics:
        """Complete the learner's last record with what only this process knows."""
        gathering = self._gathering(seen)
        record = {
            **(self.last_record or NOTHING_LEARNED),
            **self._evaluation,
            **seen.measured,
            **({} if gathering is None else {"gather": gathering}),
            "usable_cores": self._count_cores(),
            "kind": watch.kinds(),
            "activity": watch.activities(),
            "restarts": self._restarts,
            "learner_restarts": self._learner_restarts,
            "actor_restarts": self._actor_restarts,
            "rss_bytes": watch.resident_bytes(),
            "actors_per_thread": self._actors_per_thread,
        }
        gpu = seen.measured["gpu"]
        if gpu is not None and self._gpu_shares:
            mean_share = sum(self._gpu_shares) / len(self._gpu_shares)
            record["gpu"] = {**gpu, "busy_share": mean_share}
        return cast("Metrics", record)

    def _gathering(self, seen: Seen) -> Gathering | None:
        """Return the rule, what the buffer knows of its rounds, and what the gauges show."""
        if self._gather is None:
            return None
        rounds = (self.last_record or NOTHING_LEARNED).get("gather", NO_ROUNDS)
        gathering: Gathering = {**self._gather, **rounds, **seen.gathered}
        if self._engine == "virtual":
            gathering["discarded_step_share"] = None  # dropped gradients are not computed
            gathering["late"] = []  # simulated actors are always in time
        return gathering

    def first_step_ns(self) -> int:
        """Return when the first step of the whole run began, in any engine; 0 before it."""
        now_ns = self._watch.first_step_ns() if self._watch is not None else 0
        return self._first_step_ns or now_ns

    def whole_run(self) -> Metrics:
        """Return the last record with the means over the whole run, once it is over."""
        if self._watch is None:
            return NO_METRICS
        return self._complete(self._watch, self._watch.whole())

    def finish(self) -> None:
        """Look for the last time, before the summary is made."""
        try:
            self._check_folder()  # the summary needs it
        except TianjiError as error:
            self.report({"kind": "error", "role": "supervisor", "text": str(error)})
        if self._watch is not None:
            self._show(self._watch)
        self.callbacks.make()

    def close(self) -> None:
        self._screen.stop(self.whole_run())
        self._log.close()
