"""From finished runs to the results that come with the package (src/tianji/zoo/results.json)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from benchmarks.defaults.tasks import EPISODES, Task, is_passed, keeps_up
from benchmarks.zoo import tasks
from benchmarks.zoo.runs import Result, Runs
from benchmarks.zoo.tasks import Job
from tianji.ops.scores import estimate_iqm
from tianji.zoo import evidence

DIGITS = 3


def make_zoo(learnt: Runs, timed: Runs) -> evidence.Zoo:
    """Return the rows of all presets that have a finished run, and where they come from."""
    by_row = {row: results_of(learnt, row) for row in tasks.ROWS}
    kept = [run for of_row in by_row.values() for runs in of_row.values() for run in runs]
    ours = [run for run in kept if run["contestant"] == "tianji"]
    rows = [make_row(row, found, timed) for row, found in by_row.items() if found["tianji"]]
    return {
        "episodes": EPISODES,
        "machines": _distinct(f"{run['machine']['cpu']}, 1 core for each run" for run in kept),
        "versions": {run["contestant"]: run["versions"] for run in kept},
        "commits": _distinct(run["commit"] for run in ours),
        "commands": {run["contestant"]: run["command"] for run in reversed(kept)},
        "rows": rows,
    }


def results_of(runs: Runs, row: tasks.Row) -> dict[str, list[Result]]:
    """Return the finished runs of a row by contestant, in the order of their seeds."""
    seeds = {"tianji": tasks.OUR_SEEDS, "sb3": tasks.PEER_SEEDS}
    return {
        name: [found for seed in of_name if (found := runs.find(Job(name, row, seed)))]
        for name, of_name in seeds.items()
    }


def make_row(row: tasks.Row, found: dict[str, list[Result]], timed: Runs) -> evidence.Row:
    ours = reached(found["tianji"])
    theirs = reached(found["sb3"]) if found["sb3"] else None
    return {
        "preset": row.preset,
        "env": row.env,
        "algorithm": row.algorithm,
        "env_steps": row.env_steps,
        "random": row.task.random,
        "doing_nothing": row.task.floor if math.isfinite(row.task.floor) else None,
        "tianji": ours,
        "sb3": theirs,
        "verdict": None if theirs is None else judge(row.task, ours["mean"], theirs["mean"]),
        "wall_time": wall_time(row, timed),
    }


def judge(task: Task, ours: float, theirs: float) -> evidence.Verdict:
    if is_passed(task, ours, theirs):
        return "passed"
    return "kept up" if keeps_up(task, ours, theirs) else "not passed"


def reached(runs: Sequence[Result]) -> evidence.Reached:
    returns = [run["mean_return"] for run in runs]
    found = estimate_iqm([returns])
    return {
        "seeds": len(returns),
        "returns": [round(one, DIGITS) for one in returns],
        "mean": round(statistics.mean(returns), DIGITS),
        "iqm": round(float(found.value), DIGITS),
        "low": None if found.low is None else round(float(found.low), DIGITS),
        "high": None if found.high is None else round(float(found.high), DIGITS),
        "trained_steps": int(statistics.median(run["trained_steps"] for run in runs)),
        "train_s": round(statistics.median(run["wall_s"] for run in runs), 1),
        "machines": _distinct(run["machine"]["cpu"] for run in runs),
    }


def wall_time(row: tasks.Row, timed: Runs) -> evidence.WallTime | None:
    """Return the median seconds of the turns that both contestants have finished."""
    turns = [
        (*timings(ours), *timings(theirs))
        for turn in tasks.WALL_TIME_TURNS
        if (ours := timed.find(Job("tianji", tasks.shortened(row), turn)))
        and (theirs := timed.find(Job("sb3", tasks.shortened(row), turn)))
    ]
    if not turns:
        return None
    medians = [round(statistics.median(column), 2) for column in zip(*turns, strict=True)]
    ours_s, our_whole_s, theirs_s, their_whole_s = medians
    return {
        "env_steps": tasks.WALL_TIME_STEPS,
        "turns": len(turns),
        "tianji_s": ours_s,
        "sb3_s": theirs_s,
        "tianji_whole_s": our_whole_s,
        "sb3_whole_s": their_whole_s,
    }


def timings(run: Result) -> tuple[float, float]:
    """Return the seconds of training and of the whole program, for the steps that were asked for:
    Stable-Baselines3 ends with a whole batch, which may have three times as many."""
    asked_s = run["training_s"] * run["env_steps"] / run["trained_steps"]
    return asked_s, run["process_s"] - run["training_s"] + asked_s


def _distinct(words: Iterable[str]) -> list[str]:
    return sorted(set(words))
