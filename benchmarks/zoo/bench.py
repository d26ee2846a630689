"""The zoo: every preset against Stable-Baselines3 with RL Zoo's numbers, at equal steps.

    python -m benchmarks.zoo.bench                      what is missing, on all cores
    python -m benchmarks.zoo.bench --minutes 9          start no run that would end later
    python -m benchmarks.zoo.bench --only hopper-sac --contestants tianji
    python -m benchmarks.zoo.bench --wall-time          20,000 steps of each in turn, on all cores
    python -m benchmarks.zoo.bench --quick              a smoke run; nothing is kept

Every run is kept in results/ as soon as it ends. A second call makes only what is missing, and
several calls may run at the same time. `python -m benchmarks.zoo.publish` shows and publishes what
is there.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.harness import say
from benchmarks.zoo.runs import Runs
from benchmarks.zoo.tasks import ROWS, Job, jobs, wall_time_jobs
from benchmarks.zoo.workers import HERE, PEERS_PYTHON, learn_on, make, work, work_side_by_side

QUICK_STEPS = 4096
LEARN, WALL_TIME = "runs", "wall_time"
"""Folders of the results."""


def chosen(args: argparse.Namespace) -> list[Job]:
    known = [row.preset for row in ROWS]
    if unknown := set(args.only) - set(known):
        raise SystemExit(f"--only {', '.join(unknown)}: choose from {', '.join(known)}.")
    found = wall_time_jobs() if args.wall_time else jobs()
    wanted = [job for job in found if job.contestant in args.contestants]
    wanted = [job for job in wanted if not args.only or job.row.preset in args.only]
    wanted = [job for job in wanted if not args.seeds or job.seed in args.seeds]
    if args.quick:
        first = [job for job in wanted if job.seed == 1]
        return [replace(job, row=replace(job.row, env_steps=QUICK_STEPS)) for job in first]
    return wanted


def run(args: argparse.Namespace, folder: Path) -> None:
    end_s = time.monotonic() + (60 * args.minutes if args.minutes else float("inf"))
    if args.wall_time:
        work(Runs(folder / WALL_TIME), chosen(args), lambda job: make(job, episodes=0), end_s)
        return
    cores = args.cores or sorted(os.sched_getaffinity(0))
    work_side_by_side(Runs(folder / LEARN), chosen(args), [learn_on(core) for core in cores], end_s)


def main() -> int:
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--quick", action="store_true", help="a smoke run; its figures mean nothing")
    made.add_argument("--wall-time", action="store_true", help="compare wall time, not returns")
    made.add_argument("--minutes", type=float, help="start no run that would end later than this")
    made.add_argument("--cores", type=int, nargs="+", metavar="N", help="one run at a time on each")
    made.add_argument("--results", type=Path, default=HERE / "results", help="folder of the runs")
    made.add_argument("--only", nargs="+", default=[], metavar="PRESET")
    made.add_argument("--seeds", type=int, nargs="+", default=[], metavar="N")
    made.add_argument("--contestants", nargs="+", default=["tianji", "sb3"], metavar="NAME")
    args = made.parse_args()
    if "sb3" in args.contestants and not PEERS_PYTHON.exists():
        say("The peers are not installed: run `make peers`, or give `--contestants tianji`.")
        return 2
    if args.quick:
        with tempfile.TemporaryDirectory(prefix="zoo-") as scratch:
            run(args, Path(scratch))
    else:
        run(args, args.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
