"""Rehearsal: a few seconds of the real thing, with the local engine, under one plan.

Rates are read whenever the learner says that it has finished a version, so that they span whole
versions. Nothing stays behind: the run's folder is a temporary one.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tianji.channels.gauges import Gauge, Gauges
from tianji.config.run import CheckpointConfig, ObserveConfig, RunConfig
from tianji.costs.profile import Rehearsal
from tianji.engines.interface import Outcome
from tianji.engines.local import LocalEngine
from tianji.engines.signals import StopRequest, catch_signals
from tianji.engines.spec import RunSpec
from tianji.errors import WorkerLost
from tianji.programs.program import program_for
from tianji.records import Report
from tianji.types import Clock
from tianji.wording import counted

SETTLE_S = 0.6
"""After the first version: by then actors and learner have found their rhythm."""
SETTLE_VERSIONS = 2
ENOUGH_VERSIONS = 12
LIMIT_S = 30.0
"""A plan with versions so long that this is over first is judged by those that it made."""
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
    ratio: float


def rehearse(spec: RunSpec, seconds: float, limit_s: float = LIMIT_S) -> Rehearsal:
    """Run the plan for `seconds` of steady state, longer where versions are long. WorkerLost where
    it cannot run; KeyboardInterrupt when a person stops it."""
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
    """The same work, without targets, limits, checkpoints on the way, and people to tell."""
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
    """The observer of a rehearsal: marks versions, and asks the engine to stop at the end."""

    def __init__(self, stop: StopRequest, seconds: float, limit_s: float) -> None:
        self._stop = stop
        self._seconds = seconds
        self._gauges: Gauges | None = None
        self._limit_s = limit_s
        self._began_s = time.monotonic()
        self._first: _Mark | None = None
        self._settled: _Mark | None = None
        self._last: _Mark | None = None
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
        if mark.version < 1:
            return
        self._first = self._first or mark
        self._last = mark
        if self._settled is None and self._has_settled(mark):
            self._settled = mark

    def _has_settled(self, mark: _Mark) -> bool:
        assert self._first is not None
        seconds, versions = mark.at_s - self._first.at_s, mark.version - self._first.version
        return seconds >= SETTLE_S and versions >= SETTLE_VERSIONS

    def tick(self) -> None:
        is_late = time.monotonic() - self._began_s > self._limit_s
        if not self.is_over and (is_late or self._is_enough()):
            self.is_over = True
            self._stop.ask()
            self._stop.ask()  # at once: there is nothing to save

    def _is_enough(self) -> bool:
        if self._settled is None or self._last is None:
            return False
        elapsed_s = self._last.at_s - self._settled.at_s
        enough = self._last.version - self._settled.version >= ENOUGH_VERSIONS
        return elapsed_s >= self._seconds and (enough or elapsed_s >= 3 * self._seconds)

    def result(self, spec: RunSpec, outcome: Outcome) -> Rehearsal:
        if outcome["because"] == "failed":
            raise WorkerLost(f"The test run of a plan failed. {outcome['first_cause'] or ''}")
        first, last = self._settled or self._first, self._last
        if first is last:
            first = self._first  # slow as it is, what it did while settling must do
        if first is None or last is None or first is last:
            raise WorkerLost(
                f"A test run with {counted(spec.plan.num_actors, 'actor')} made too few "
                f"versions in {self._limit_s:.0f} s to measure its speed."
            )
        elapsed_s = last.at_s - first.at_s
        return Rehearsal(
            num_actors=spec.plan.num_actors,
            learner_threads=spec.plan.learner_threads,
            actor_threads=spec.plan.actor_threads,
            produced=(last.produced - first.produced) / elapsed_s,
            received=(last.received - first.received) / elapsed_s,
            trained=(last.trained - first.trained) / elapsed_s,
            lag_versions=mean_lag(first.lags, last.lags),
            ratio=last.ratio,
        )


def _mark(gauges: Gauges, record: Mapping[str, Any]) -> _Mark:
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
    """Of what entered the store between two histograms."""
    before = first + (0,) * (len(last) - len(first))
    counts = [late - early for early, late in zip(before, last, strict=True)]
    return sum(lag * count for lag, count in enumerate(counts)) / max(1, sum(counts))
