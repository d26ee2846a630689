"""Do the defaults learn? Greedy returns with nothing but --env, beside those of Stable-Baselines3.

    python -m benchmarks.defaults.bench                     what is missing, then the table
    python -m benchmarks.defaults.bench --contestants tianji --algorithms auto --envs Ant-v5
    python -m benchmarks.defaults.bench --quick             a smoke run of everything

Every run is kept in results/CONTESTANT.json as soon as it ends, and is not made again: stop and
start the benchmark as you like. Equal steps give equal results on any machine (ours up to the order
in which unrolls arrive), so the peer's runs are made once and stay.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import Any

from benchmarks.defaults.tasks import SEEDS, TASKS, Job, Task, is_passed, keeps_up
from benchmarks.harness import ROOT, ContestantFailed, Report, parser, run_json, say, spread

HERE = ROOT / "benchmarks" / "defaults"
PEERS_PYTHON = ROOT / ".peers" / "bin" / "python"
MUST_PASS = {"auto": 10, "dqn": 2}
YARDSTICK = {"auto": "ppo", "dqn": "dqn"}
"""The peer's algorithm that ours is held against; it has no IMPALA, and chooses none by itself. Its
PPO is the one that takes every task."""
Result = dict[str, Any]


class Book:
    """The results of one contestant, on disk."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = Lock()
        self.results: list[Result] = []
        if path is not None and path.exists():
            self.results = json.loads(path.read_text())

    def find(self, job: Job) -> Result | None:
        asked = asdict(job)
        found = (r for r in self.results if all(r[key] == value for key, value in asked.items()))
        return next(found, None)

    def add(self, job: Job, result: Result) -> None:
        with self._lock:
            self.results.append({**asdict(job), **result})
            self.results.sort(key=lambda r: (r["algorithm"], r["env"], r["seed"]))
            if self._path is not None:
                fresh = self._path.with_suffix(".new")
                fresh.write_text(json.dumps(self.results, indent=1) + "\n")
                fresh.replace(self._path)


def jobs(contestant: str, algorithms: list[str], steps: int | None) -> Iterator[Job]:
    """Every run of a contestant; steps: for all of them, in place of the tasks' own."""
    for task in TASKS:
        for algorithm in algorithms:
            theirs = YARDSTICK.get(algorithm)
            named = theirs if contestant == "sb3" else algorithm
            own_steps = task.steps.get(theirs or algorithm)
            if named is not None and own_steps is not None:
                for seed in SEEDS if steps is None else SEEDS[:1]:
                    yield Job(contestant, named, task.env, steps or own_steps, seed)


def command(job: Job) -> list[str]:
    asked = [job.algorithm, job.env, str(job.env_steps), str(job.seed)]
    if job.contestant == "sb3":
        return [str(PEERS_PYTHON), str(HERE / "sb3_returns.py"), *asked]
    return [sys.executable, "-m", "benchmarks.defaults.our_returns", *asked]


def make_missing(books: dict[str, Book], missing: list[Job], workers: int) -> None:
    def make(job: Job) -> None:
        try:
            answer = run_json(command(job), timeout_s=7200, cwd=ROOT, env=_one_thread(job))
        except ContestantFailed as error:
            say(f"{job}: {error}")
            return
        books[job.contestant].add(job, answer)
        say(f"{job.contestant} {job.algorithm} {job.env} {job.seed}: {answer['mean_return']:.1f}")

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(make, missing))


def _one_thread(job: Job) -> dict[str, str]:
    return {"OMP_NUM_THREADS": "1"} if job.contestant == "sb3" else {}


def returns(book: Book, algorithm: str, env: str, steps: int) -> list[float]:
    """Mean greedy return of every seed."""
    asked = (algorithm, env, steps)
    found = (r for r in book.results if (r["algorithm"], r["env"], r["env_steps"]) == asked)
    return [r["mean_return"] for r in found]


def show(report: Report, books: dict[str, Book], algorithm: str) -> None:
    """The table of one algorithm, and how many tasks are passed."""
    peers = YARDSTICK.get(algorithm)
    rows, passed, kept_up = [], 0, 0
    for task in TASKS:
        steps = task.steps.get(peers or algorithm)
        if steps is None:
            continue
        ours = returns(books["tianji"], algorithm, task.env, steps)
        theirs = returns(books["sb3"], peers, task.env, steps) if peers else []
        beside = [] if peers else [_cell(returns(books["tianji"], "auto", task.env, steps))]
        verdict = ""
        if ours and theirs:
            means = statistics.mean(ours), statistics.mean(theirs)
            kept_up += keeps_up(task, *means)
            passed += is_passed(task, *means)
            verdict = _verdict(task, *means)
        numbers = (f"{steps:,}", f"{task.random:.0f}")
        rows.append([task.env, *numbers, _cell(ours), _cell(theirs), *beside, verdict])
    headers = ["task", "steps", "random", "tianji", "sb3", *([] if peers else ["our auto"]), ""]
    title = f"{algorithm}, defaults: mean of 20 greedy episodes at the end, mean (range) of seeds"
    report.table(title, headers, rows)
    if algorithm in MUST_PASS:
        report.check(f"{algorithm}: tasks that keep up", kept_up, ">=", MUST_PASS[algorithm])
        report.check(f"{algorithm}: tasks passed", passed, ">=", MUST_PASS[algorithm])


def _verdict(task: Task, ours: float, theirs: float) -> str:
    if is_passed(task, ours, theirs):
        return "passed"
    return "kept up at the floor" if keeps_up(task, ours, theirs) else "not passed"


def _cell(values: list[float]) -> str:
    if not values:
        return "-"
    return f"{statistics.mean(values):.0f} ({min(values):.0f} to {max(values):.0f}) [{len(values)}]"


def show_training_returns(report: Report, books: dict[str, Book]) -> None:
    """LunarLander by the mean of the last 100 training episodes, which a person sees."""
    found = [
        r["mean_return_100"]
        for r in books["tianji"].results
        if (r["algorithm"], r["env"]) == ("auto", "LunarLander-v3")
    ]
    if found:
        print(f"\nLunarLander-v3, auto, mean_return_100 at the end: {spread(found, 0)}")
        report.check("LunarLander-v3: lowest mean_return_100 of seeds", min(found), ">=", 150.0)


def main() -> int:
    made = parser(__doc__ or "")
    made.add_argument("--contestants", nargs="+", default=["tianji", "sb3"], metavar="NAME")
    made.add_argument("--algorithms", nargs="+", default=["auto", "dqn", "impala"], metavar="NAME")
    made.add_argument("--envs", nargs="+", default=[task.env for task in TASKS], metavar="NAME")
    made.add_argument("--workers", type=int, default=max(1, len(os.sched_getaffinity(0)) // 2))
    args = made.parse_args()
    contestants = ["tianji"] if args.quick else args.contestants
    kept = None if args.quick else HERE / "results"
    books = {name: Book(kept / f"{name}.json" if kept else None) for name in ("tianji", "sb3")}
    steps = 4096 if args.quick else None
    every = (job for name in contestants for job in jobs(name, args.algorithms, steps))
    wanted = [job for job in every if job.env in args.envs]
    missing = [job for job in wanted if books[job.contestant].find(job) is None]
    if any(job.contestant == "sb3" for job in missing) and not PEERS_PYTHON.exists():
        say("The peers are not installed: run `make peers`, or give `--contestants tianji`.")
        return 2
    make_missing(books, missing, args.workers)
    report = Report("defaults", args, ("stable-baselines3",))
    for algorithm in args.algorithms:
        show(report, books, algorithm)
    show_training_returns(report, books)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
