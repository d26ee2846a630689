"""A real run of the local engine, disturbed by a script and watched by its gauges."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from benchmarks.disturbances.slowed import ALGORITHM, Speeds
from benchmarks.disturbances.tape import Sample, Tape, Told
from tianji.channels.gauges import Gauge, Gauges
from tianji.config.machine import read_machine
from tianji.config.run import RunConfig
from tianji.engines.interface import Outcome
from tianji.engines.local import LocalEngine
from tianji.engines.signals import StopRequest, catch_signals
from tianji.engines.spec import RunSpec
from tianji.envs.build import probe
from tianji.planning.resolve.resolve import resolve
from tianji.programs.one_group import program_for
from tianji.reports import Report
from tianji.trace.spans import SPANS_FOLDER, Kind, read_spans
from tianji.types import Clock

SAMPLE_PERIOD_S = 0.05
START_LIMIT_S = 60.0
NUM_ACTORS = 4
CONFIG = {
    "env": "benchmarks.disturbances.slowed:make",
    "num_envs": 2 * NUM_ACTORS,
    "num_actors": NUM_ACTORS,
    "learner_threads": 1,
    "max_lag": 1,
    "target_return": None,
    "max_env_steps": 10**9,
    "algorithm": {
        "name": ALGORITHM.name,
        "unroll_length": 8,
        "epochs": 2,
        "minibatch_size": 32,
    },
    "observe": {"period_s": 0.05, "tensorboard": False, "display": "off", "trace": True},
    "plan": {"source": "rule"},
}


class Stage:
    """The run's observer, and what the script may do to the run."""

    def __init__(self, speeds: Speeds) -> None:
        self.speeds = speeds
        self.tape = Tape()
        self.events: list[str] = []
        self._gauges: Gauges | None = None
        self._pids: dict[str, int] = {}
        self.versions = 0

    def watch(
        self,
        gauges: Gauges,
        pids: dict[str, int] | None = None,
        now_ns: Clock = time.monotonic_ns,
    ) -> None:
        self._gauges, self._pids = gauges, dict(pids or {})

    def report(self, report: Report) -> None:
        if report["kind"] == "metrics":
            self._note(report["record"])
        elif report["kind"] in ("restart", "imbalance", "error"):
            self.events.append(f"{report.get('role', '')}: {report['text']}")

    def _note(self, record: dict[str, Any]) -> None:
        self.versions = record["version"]
        ratio = record["ratio"]
        error = ratio["actual"] / ratio["target"] - 1 if record["version"] else 0.0
        lags = tuple(record["lag_histogram"])
        self.tape.told.append(Told(time.monotonic(), lags, error))

    def tick(self) -> None:
        """The thread of the script looks more often than this is called."""

    def sample(self) -> None:
        if self._gauges is None:
            return
        rows = self._gauges.rows
        actors = [row for name, row in rows.items() if name.startswith("actor-")]
        sent = sum(row[Gauge.ITEMS] for row in actors)  # first: so that none seems lost
        self.tape.samples.append(
            Sample(
                at_s=time.monotonic(),
                received_steps=rows["buffer"][Gauge.RECEIVED_STEPS],
                sent=sent,
                received=rows["buffer"][Gauge.ITEMS],
                discarded=sum(row[Gauge.DISCARDED] for row in (rows["buffer"], *actors)),
                blocked=rows["buffer"][Gauge.BLOCKED],
                blocked_s=rows["buffer"][Gauge.BLOCKED_NS] / 1e9,
            )
        )

    def run_for(self, seconds: float) -> None:
        """Watch the run for a while."""
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            self.sample()
            time.sleep(SAMPLE_PERIOD_S)

    def kill(self, actor: int) -> None:
        os.kill(self._pids[f"actor-{actor}"], signal.SIGKILL)

    def kill_half(self) -> None:
        for index in range(NUM_ACTORS // 2):
            self.kill(index)


@dataclass(frozen=True)
class Phase:
    """Something happens, and then the run is left alone for a while."""

    name: str
    disturb: Callable[[Any], None]
    """What is done to a Stage, or to another run that can be disturbed in the same way."""
    seconds: float


@dataclass(frozen=True)
class Played:
    """The tape of a whole script."""

    tape: Tape
    marks: dict[str, tuple[float, float]]
    """By phase: when it began and ended."""
    outcome: Outcome
    events: Sequence[str]
    longest_send_s: float


def play(
    phases: Sequence[Phase],
    settle_s: float,
    seed: int = 0,
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> Played:
    """Run, let it settle, go through the phases, stop. settings: of the run, beside CONFIG."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, catch_signals() as stop:
        stage = Stage(Speeds.create(Path(folder) / "speeds"))
        spec = _spec(Path(folder), {**settings, "seed": seed})
        engine = LocalEngine(spec, program_for(spec.config, spec.plan), stage)
        marks: dict[str, tuple[float, float]] = {}
        script = threading.Thread(
            target=_follow, args=(stage, phases, settle_s, stop, marks), daemon=True
        )
        script.start()
        outcome = engine.run(stop, resume=False)
        script.join()
        send_s = _longest_send_s(Path(folder))
    return Played(stage.tape, marks, outcome, stage.events, send_s)


def _spec(folder: Path, settings: Mapping[str, Any]) -> RunSpec:
    config = RunConfig.model_validate({**CONFIG, **settings})
    found = probe(config.env, config.env_kwargs)
    plan = resolve(config, read_machine(), found)
    return RunSpec(config, plan, found.spaces, config.env, folder)


def _follow(
    stage: Stage,
    phases: Sequence[Phase],
    settle_s: float,
    stop: StopRequest,
    marks: dict[str, tuple[float, float]],
) -> None:
    limit_s = time.monotonic() + START_LIMIT_S
    while stage.versions < 5 and time.monotonic() < limit_s:
        time.sleep(SAMPLE_PERIOD_S)
    stage.run_for(settle_s)
    for phase in phases:
        began_s = time.monotonic()
        phase.disturb(stage)
        stage.run_for(phase.seconds)
        marks[phase.name] = began_s, time.monotonic()
    stop.ask()


def _longest_send_s(run_dir: Path) -> float:
    longest_ns = 0
    for path in (run_dir / SPANS_FOLDER).glob("actor-*"):
        spans = read_spans(path)
        durations = (spans.end_ns - spans.start_ns)[spans.kind == Kind.SEND]
        longest_ns = max(longest_ns, int(durations.max(initial=0)))
    return longest_ns / 1e9
