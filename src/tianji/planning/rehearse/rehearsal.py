"""A rehearsal: a test run of a few seconds with the local engine, under one plan.

Rates are read whenever the learner has finished a version, so that they span whole versions. The
run folder is temporary.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tianji.channels.gauges import Gauge, Gauges
from tianji.config.run import CheckpointConfig, ObserveConfig, RunConfig
from tianji.costs.profile import RATES, SHARES, Rehearsal
from tianji.engines.interface import Outcome
from tianji.engines.local import LocalEngine
from tianji.engines.signals import StopRequest, catch_signals
from tianji.engines.spec import RunSpec
from tianji.errors import WorkerLost
from tianji.programs.one_group import program_for
from tianji.records import LearnerMetrics
from tianji.reports import Report
from tianji.types import Clock
from tianji.wording import counted

# After the first version, until the rates of actors and learner are steady.
SETTLE_S = 0.6
SETTLE_VERSIONS = 2
ENOUGH_VERSIONS = 12
LIMIT_S = 30.0  # a plan with longer versions is judged by those that it has made by then
_FAR_AWAY = 10**9
_REPORT_PERIOD_S = 0.05


@dataclass(frozen=True, slots=True)
class _Mark:
    """The counters at the end of one version."""

    at_s: float
    version: int
    produced: int
    received: int
    trained: int
    lags: tuple[int, ...]
    ratio: float | None


def rehearse(spec: RunSpec, seconds: float, limit_s: float = LIMIT_S) -> Rehearsal:
    """Run the plan for `seconds` in the steady state, longer if versions are long.

    Raises WorkerLost if it cannot run, and KeyboardInterrupt if a person stops it.
    """
    with (
        tempfile.TemporaryDirectory(prefix="tianji-rehearsal-") as folder,
        catch_signals() as stop,
    ):
        quiet = replace(spec, config=_without_ends(spec.config), run_dir=Path(folder))
        stage = Stage(stop, seconds, limit_s)
        engine = LocalEngine(quiet, program_for(quiet.config, quiet.plan), stage)
        outcome = engine.run(stop, resume=False)
    if not stage.is_over and stop.level:
        raise KeyboardInterrupt
    return stage.result(spec, outcome)


def _without_ends(config: RunConfig) -> RunConfig:
    """Return the config without targets, limits, checkpoints and display."""
    return config.model_copy(
        update={
            "target_return": None,
            "max_env_steps": _FAR_AWAY,
            "max_wall_s": None,
            "checkpoint": CheckpointConfig(period_s=_FAR_AWAY, keep_last=1, replay=False),
            "observe": ObserveConfig(
                period_s=_REPORT_PERIOD_S, tensorboard=False, display="off", trace=False
            ),
        }
    )


class Stage:
    """The observer of a rehearsal: it notes versions and stops the engine when it has enough."""

    def __init__(self, stop: StopRequest, seconds: float, limit_s: float) -> None:
        self._stop = stop
        self._seconds = seconds
        self._gauges: Gauges | None = None
        self._limit_s = limit_s
        self._began_s = time.monotonic()
        self._marks: list[_Mark] = []
        self.is_over = False

    def watch(
        self,
        gauges: Gauges,
        pids: dict[str, int] | None = None,
        now_ns: Clock | None = None,
        settle: Callable[[], None] | None = None,
    ) -> None:
        self._gauges = gauges

    def report(self, report: Report) -> None:
        if report["kind"] != "metrics" or self._gauges is None or self.is_over:
            return
        mark = _mark(self._gauges, report["record"])
        if mark.version >= 1:
            self._marks.append(mark)

    def tick(self) -> None:
        is_late = time.monotonic() - self._began_s > self._limit_s
        if not self.is_over and (is_late or self._is_enough()):
            self.is_over = True
            self._stop.ask()
            self._stop.ask()  # at once: there is nothing to save

    def _steady(self) -> list[_Mark]:
        return [
            mark
            for mark in self._marks
            if mark.at_s - self._marks[0].at_s >= SETTLE_S
            and mark.version - self._marks[0].version >= SETTLE_VERSIONS
        ]

    def _is_enough(self) -> bool:
        steady = self._steady()
        if not steady:
            return False
        elapsed_s = steady[-1].at_s - steady[0].at_s
        has_versions = steady[-1].version - steady[0].version >= ENOUGH_VERSIONS
        return elapsed_s >= self._seconds * (1 if has_versions else 3)

    def result(self, spec: RunSpec, outcome: Outcome) -> Rehearsal:
        """Return the steady rates; those of all versions if the run was too slow to settle."""
        if outcome["because"] == "failed":
            raise WorkerLost(f"The test run of a plan failed. {outcome['first_cause'] or ''}")
        steady = self._steady()
        marks = steady if len(steady) > 1 else self._marks
        if len(marks) < 2:
            raise WorkerLost(
                f"A test run with {counted(spec.plan.num_actors, 'actor')} made too few "
                f"versions in {self._limit_s:.0f} s to measure its speed."
            )
        first, last = marks[0], marks[-1]
        elapsed_s = last.at_s - first.at_s
        return Rehearsal(
            **{name: getattr(spec.plan, name) for name in SHARES},
            **{name: (getattr(last, name) - getattr(first, name)) / elapsed_s for name in RATES},
            lag_versions=mean_lag(first.lags, last.lags),
            ratio=last.ratio,
        )


def _mark(gauges: Gauges, record: LearnerMetrics) -> _Mark:
    actors = gauges.of_kind("actor").values()
    return _Mark(
        at_s=time.monotonic(),
        version=record["version"],
        produced=sum(row[Gauge.STEPS] for row in actors),
        received=gauges.the("buffer")[Gauge.RECEIVED_STEPS],
        trained=gauges.the("learner")[Gauge.STEPS],
        lags=tuple(record["lag_histogram"]),
        ratio=record["ratio"]["actual"],
    )


def mean_lag(first: tuple[int, ...], last: tuple[int, ...]) -> float:
    """Return the mean lag of what entered the store between two histograms."""
    before = first + (0,) * (len(last) - len(first))
    counts = [late - early for early, late in zip(before, last, strict=True)]
    return sum(lag * count for lag, count in enumerate(counts)) / max(1, sum(counts))
