"""Makes the runs that are missing, and keeps each one as soon as it ends."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Thread

from benchmarks.defaults.tasks import EPISODES
from benchmarks.harness import ROOT, ContestantFailed, machine_facts, run_json, say
from benchmarks.zoo.runs import Result, Runs, curve, settings_of
from benchmarks.zoo.tasks import OUR_SEEDS, Job

HERE = ROOT / "benchmarks" / "zoo"
PEERS_PYTHON = ROOT / ".peers" / "bin" / "python"
LONGEST_S = 3600.0
UNKNOWN_S = 300.0
"""How long a run is taken to last before its like has ended once."""
SPARE = 1.3
"""A run may take this much longer than the longest of its like."""
Make = Callable[[Job], Result]


def learn_on(core: int) -> Make:
    """Return how a run is made on one core, with its greedy returns at the end."""
    prefix, env = ("taskset", "--cpu-list", str(core)), {"OMP_NUM_THREADS": "1"}
    return lambda job: make(job, EPISODES, prefix, env)


def make(
    job: Job, episodes: int, prefix: Sequence[str] = (), env: dict[str, str] | None = None
) -> Result:
    """Make one run and return what is kept of it."""
    command = command_of(job, episodes)
    answer = run_json([*prefix, *command], timeout_s=LONGEST_S, cwd=ROOT, env=env)
    if answer["trained_steps"] < job.row.env_steps:  # a signal ends our runs in good order
        steps = answer["trained_steps"]
        raise ContestantFailed(
            f"{job.name} was ended after {steps:,} of {job.row.env_steps:,} steps."
        )
    finished, returns = answer.pop("episodes"), answer["returns"]
    return {
        "contestant": job.contestant,
        "preset": job.row.preset,
        "seed": job.seed,
        "env_steps": job.row.env_steps,
        "settings": settings_of(job),
        "mean_return": statistics.mean(returns) if returns else None,
        **answer,
        "curve": curve(finished, answer["trained_steps"]),
        "command": " ".join(["python", *command[1:]]),
        "machine": machine_facts(),
    }


def command_of(job: Job, episodes: int) -> list[str]:
    asked = [str(job.row.env_steps), str(job.seed), str(episodes)]
    if job.contestant == "sb3":
        module = [str(PEERS_PYTHON), "-m", "benchmarks.zoo.sb3_run"]
        return [*module, job.row.algorithm, job.row.env, *asked]
    return [sys.executable, "-m", "benchmarks.zoo.our_run", job.row.preset, *asked]


def expected_s(runs: Runs, job: Job) -> float:
    """Return how long a run may take, by the longest of its like so far."""
    like = (runs.find(replace(job, seed=seed)) for seed in OUR_SEEDS)
    return max((SPARE * one["process_s"] for one in like if one), default=UNKNOWN_S)


def work(runs: Runs, wanted: Sequence[Job], make_one: Make, end_s: float) -> None:
    """Make the runs that nobody else has made or is making, and that end in time."""
    for job in wanted:
        if runs.find(job) or time.monotonic() + expected_s(runs, job) > end_s:
            continue
        with runs.claim(job) as is_ours:
            if not is_ours or runs.find(job):
                continue
            try:
                result = make_one(job)
            except (ContestantFailed, subprocess.TimeoutExpired) as error:
                say(f"{job.name}: {error}")
                continue
            runs.add(job, result)
            shown = "" if result["mean_return"] is None else f" {result['mean_return']:.1f},"
            say(f"{job.name}:{shown} {result['wall_s']:.1f} s")


def work_side_by_side(
    runs: Runs, wanted: Sequence[Job], makers: Sequence[Make], end_s: float
) -> None:
    """Let several workers share the runs; each makes one at a time."""
    threads = [Thread(target=work, args=(runs, wanted, one, end_s)) for one in makers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
