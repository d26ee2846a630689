"""The runs behind figures 4 (a) and (b): DQN on Pong with TianJi's balance, and Ape-X.

Each run is a `tianji train` in a process of its own, as a person starts it, for a given time. They
run one after the other, or side by side on disjoint halves of the cores. Whatever they have
reached so far is kept while they run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from tianji.devices.nvml import list_gpus
from tianji.errors import TianjiError
from tianji.figures.commands import environment, words_on
from tianji.figures.files import Data, Point

PRESETS = ("pong-dqn", "pong-apex")
MINUTES = 8.0
LOOK_PERIOD_S = 10.0
POINT_PERIOD_S = 5.0
CLOSING_S = 60.0
"""Longest time from the end of the training to the end of the process."""
SETTLED_SHARE = 1 / 3
"""Rates are counted after this share of a run: graphs are recorded, and the store is filled."""


@dataclass(frozen=True, slots=True)
class Contest:
    """What is run: Contest(("pong-dqn", "pong-apex"), seconds=480.0, side_by_side=True)"""

    presets: Sequence[str] = PRESETS
    seconds: float = 60 * MINUTES
    side_by_side: bool = False
    seed: int = 1
    options: Sequence[str] = ()
    """Words for every command, such as ("--evaluate.period-s", "30")."""
    start_limit_s: float = 120.0
    """Longest time from the start of a process to the beginning of its training."""


def measure() -> Data:
    """Run both for 8 minutes, one after the other."""
    with tempfile.TemporaryDirectory(prefix="tianji-figure-") as folder:
        return run_contest(Contest(), Path(folder))


def run_contest(
    contest: Contest, folder: Path, keep: Callable[[Data], None] = lambda data: None
) -> Data:
    """Run all presets in this folder; return what they reached. keep: told every 10 seconds."""
    halves = _shares(len(contest.presets)) if contest.side_by_side else None
    groups = [contest.presets] if contest.side_by_side else [[name] for name in contest.presets]
    done: list[Point] = []
    for group in groups:
        runs = [
            _Running(contest, preset, folder, None if halves is None else halves[number])
            for number, preset in enumerate(group)
        ]
        try:
            while not all([run.is_over() for run in runs]):
                keep(_data(contest, [*done, *(run.point() for run in runs)]))
                time.sleep(min(LOOK_PERIOD_S, contest.seconds / 10))
        finally:
            for run in runs:
                run.end()
        done += [run.point() for run in runs]
        keep(_data(contest, done))
    return _data(contest, done)


def _shares(count: int) -> list[list[int]]:
    """Return equal parts of the cores that this process may use, neighbours together."""
    cores = sorted(os.sched_getaffinity(0))
    size = max(1, len(cores) // count)
    return [cores[size * number : size * (number + 1)] or cores for number in range(count)]


def _data(contest: Contest, points: Sequence[Point]) -> Data:
    return {
        "minutes": contest.seconds / 60,
        "side_by_side": contest.side_by_side,
        "gpu": next((gpu.name for gpu in list_gpus()), None),
        "points": points,
    }


class _Running:
    """One run in its process."""

    def __init__(
        self, contest: Contest, preset: str, folder: Path, cores: Sequence[int] | None
    ) -> None:
        name = f"{preset}-s{contest.seed}"
        self._preset, self._seed, self._cores = preset, contest.seed, cores
        self._run_dir = folder / "runs" / name
        self._log = folder / f"{name}.log"
        self._limit_s = contest.start_limit_s + contest.seconds + CLOSING_S
        words = (
            "train", preset, "--run", name, "--seed", str(contest.seed), "--target-return", "none",
            "--max-env-steps", str(10**9), "--max-wall-s", str(contest.seconds),
            "--observe.display", "plain", *contest.options,
        )  # fmt: skip
        self.command = f"tianji {' '.join(words)}"
        folder.mkdir(parents=True, exist_ok=True)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*words_on(cores), sys.executable, "-m", "tianji", *words],
                cwd=folder, stdout=log, stderr=subprocess.STDOUT, env=environment(),
            )  # fmt: skip
        self._began_s = time.monotonic()

    def is_over(self) -> bool:
        code = self._process.poll()
        if code is None and time.monotonic() - self._began_s > self._limit_s:
            raise TianjiError(f"{self._preset} did not end after {self._limit_s:.0f} s.")
        if code:
            tail = "\n".join(self._log.read_text(errors="replace").splitlines()[-15:])
            raise TianjiError(f"{self.command} ended with {code}:\n{tail}")
        return code is not None

    def end(self) -> None:
        """Let the process stop if it still runs: Ctrl-C, and a kill if that does not help."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(CLOSING_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def point(self) -> Point:
        """Return what the run has reached so far."""
        records, summary = _read_records(self._run_dir), _read_summary(self._run_dir)
        return {
            "preset": self._preset,
            "seed": self._seed,
            "command": self.command,
            "cores": None if self._cores is None else len(self._cores),
            "curve": curve_of(records),
            "settled": settled_rates(records),
            "summary": {key: summary.get(key) for key in KEPT} if summary else None,
        }


KEPT = (
    "algorithm", "wall_s", "env_steps", "updates", "version", "mean_return_100",
    "best_mean_return_100", "lag_versions", "ratio", "rates_per_s", "busy_share", "waited_s",
    "device", "inference", "gpu", "start_up_s", "stopped_because", "explanation",
)  # fmt: skip
"""Keys of the summary that belong to the data."""


def _read_records(run_dir: Path) -> list[dict[str, Any]]:
    """Return the metrics so far; the last line may be incomplete."""
    try:
        lines = (run_dir / "metrics.jsonl").read_text().splitlines(keepends=True)
    except OSError:
        return []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def _read_summary(run_dir: Path) -> dict[str, Any]:
    try:
        summary: dict[str, Any] = json.loads((run_dir / "summary.json").read_text())
    except (OSError, ValueError):
        return {}
    return summary


def curve_of(records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what changes in the course of a run, every 5 seconds, and every evaluation."""
    found: list[dict[str, Any]] = []
    for record in records:
        greedy = (record.get("evaluation") or {}).get("mean_return")
        is_due = not found or record["wall_s"] - found[-1]["seconds"] >= POINT_PERIOD_S
        if is_due or greedy is not None:
            found.append(
                {
                    "seconds": round(record["wall_s"], 2),
                    "steps": record["env_steps"],
                    "updates": record["updates"],
                    "return": record["mean_return_100"],
                    "greedy_return": greedy,
                    "lag_versions": record["lag_versions"]["mean"],
                    "ratio": record["ratio"]["actual"],
                    "gpu_busy_share": (record.get("gpu") or {}).get("busy_share"),
                }
            )
    return found


def settled_rates(records: Sequence[Mapping[str, Any]]) -> dict[str, float] | None:
    """Return the rates per second after the first third of a run; None while there are none."""
    settled = [r for r in records if r["wall_s"] > SETTLED_SHARE * records[-1]["wall_s"]]
    if len(settled) < 2:
        return None
    first, last = settled[0], settled[-1]
    seconds = last["wall_s"] - first["wall_s"]
    rates = {
        "steps_per_s": (last["env_steps"] - first["env_steps"]) / seconds,
        "updates_per_s": (last["updates"] - first["updates"]) / seconds,
        "trained_per_s": _mean(settled, lambda record: record["rates_per_s"]["trained"]),
    }
    shares = [r for r in settled if (r.get("gpu") or {}).get("busy_share") is not None]
    if len(shares) > 1:
        rates["gpu_busy_share"] = _mean(shares, lambda record: record["gpu"]["busy_share"])
    return rates


def _mean(records: Sequence[Mapping[str, Any]], value: Callable[[Any], float]) -> float:
    """Return the mean over time."""
    spans = [(after["wall_s"] - before["wall_s"], after) for before, after in pairwise(records)]
    weighed = sum(span * value(record) for span, record in spans)
    return float(weighed / sum(span for span, _ in spans))
