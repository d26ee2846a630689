"""Groups against unconnected copies: what does the connection cost, and what do more groups bring?

    python -m benchmarks.groups.bench                          about 40 minutes on 16 cores
    python -m benchmarks.groups.bench --groups 1 2 --cores 1   on two cores
    python -m benchmarks.groups.bench --quick

Every contestant has the same cores: groups share those that the copies have one by one.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.harness import Report, alternate, median, parser, say, spread, train
from tianji.config.machine import read_machine
from tianji.planning.groups import divide

PRESETS = ("cartpole-dqn", "cartpole-ppo")
COMBINES = ("average", "gossip")
COPIES = "copies"
SHARE_BOUND = 0.9
FOREVER = ("--target-return", "none", "--max-env-steps", "1000000000")

Figures = dict[str, Any]


def on_cores(cores: Sequence[int], work: Callable[[], Figures]) -> Callable[[], Figures]:
    """Start work on a thread that may use only these cores, as the processes that it starts; return
    what waits for the result."""
    found: list[Figures | BaseException] = []

    def run() -> None:
        os.sched_setaffinity(0, cores)  # of this thread and of its children
        try:
            found.append(work())
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is taken
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()

    def result() -> Figures:
        thread.join()
        (one,) = found
        if isinstance(one, BaseException):
            raise one
        return one

    return result


def rates(summary: Figures) -> Figures:
    """Return the two rates that count, and what else a reader may ask for."""
    found = summary["rates_per_s"]
    return {
        "received_per_s": found["received"],
        "trained_per_s": found["trained"],
        "lag_mean": summary["lag_versions"]["mean"],
        "groups": summary["groups"],
        "learner_threads": summary["plan"]["learner_threads"],
        "num_actors": summary["plan"]["num_actors"],
        "cores": summary["plan"]["cores"],
    }


def run_copies(preset: str, shares: Sequence[Sequence[int]], options: Sequence[str]) -> Figures:
    """Train unconnected copies at the same time, each on its share; their rates add up."""
    runs = [
        on_cores(share, lambda seed=seed: train(preset, *options, "--seed", str(seed)))
        for seed, share in enumerate(shares, 1)
    ]
    copies = [rates(wait()) for wait in runs]
    return {
        "received_per_s": sum(copy["received_per_s"] for copy in copies),
        "trained_per_s": sum(copy["trained_per_s"] for copy in copies),
        "copies": copies,
    }


def run_groups(
    preset: str, shares: Sequence[Sequence[int]], combine: str, every: int, options: Sequence[str]
) -> Figures:
    """Train one run of as many groups, on the cores of all."""
    words = ("--num-groups", str(len(shares)), "--combine", combine, "--combine-every", str(every))
    cores = [core for share in shares for core in share]
    return on_cores(cores, lambda: train(preset, *options, *words))()


def shares_of(num_groups: int, cores_each: int) -> list[tuple[int, ...]]:
    """Return the cores of each group; whole cores where the machine has hyper-threads."""
    machine = read_machine()
    possible = len(machine.cores) // cores_each
    if num_groups > possible:
        raise SystemExit(f"{num_groups} groups of {cores_each} cores need more than this machine.")
    return [share.cores for share in divide(machine, possible)[:num_groups]]


def bench_speed(report: Report, preset: str, num_groups: int, args: argparse.Namespace) -> None:
    """Compare the rates of copies and groups, in turns."""
    shares = shares_of(num_groups, args.cores)
    options = (*FOREVER, "--max-wall-s", str(args.seconds), "--plan.source", "rule")
    found: dict[str, list[Figures]] = {name: [] for name in (COPIES, *COMBINES)}
    for name, turn in alternate(tuple(found), range(1, args.rounds + 1)):
        if name == COPIES:
            figures = run_copies(preset, shares, options)
        else:
            figures = rates(run_groups(preset, shares, name, args.every, options))
        found[name].append(figures)
        report.add(f"{preset}, {num_groups}, {name}", turn, figures)
        say(f"{preset}, {num_groups} groups, {name}: {figures['received_per_s']:,.0f} received/s")
    rows = []
    for name, some in found.items():
        parts = {
            rate: [one[rate] / alone[rate] for one, alone in zip(some, found[COPIES], strict=True)]
            for rate in ("received_per_s", "trained_per_s")
        }
        shown = [spread([one[rate] for one in some], 0) for rate in parts]
        rows.append([name, *shown, *(spread(part) for part in parts.values())])
        if name != COPIES:
            for rate, part in parts.items():
                what = f"{preset}, {num_groups} groups, {name}: {rate} over copies"
                report.check(what, median(part), ">=", SHARE_BOUND)
    headers = [
        "combined by",
        "received/s",
        "trained/s",
        "received over copies",
        "trained over copies",
    ]
    title = f"{preset}, {num_groups} groups of {args.cores} cores, a mix every {args.every} updates"
    report.table(title, headers, rows)


def bench_target(report: Report, preset: str, args: argparse.Namespace) -> None:
    """Show the seconds and the steps to the preset's target against the number of groups."""
    rows = []
    for num_groups in args.groups:
        shares = shares_of(num_groups, args.cores)
        for combine in COMBINES if num_groups > 1 else COMBINES[:1]:
            runs = []
            for seed in range(1, args.rounds + 1):
                options = ("--seed", str(seed), "--plan.source", "rule")
                summary = run_groups(preset, shares, combine, args.every, options)
                report.add(f"{preset}, {num_groups}, {combine}, to target", seed, summary)
                runs.append(summary)
            seconds = [run["time_to_target_s"] for run in runs]
            steps = [run["env_steps"] / 1000 for run in runs]
            name = combine if num_groups > 1 else "one learner"
            rows.append([str(num_groups), name, spread(seconds), spread(steps, 0)])
            say(f"{preset}, {num_groups} groups, {name}: {spread(seconds)} s to the target")
    headers = ["groups", "combined by", "s to target", "thousand steps"]
    report.table(f"{preset}: time to its target against groups", headers, rows)


def main() -> int:
    made = parser(__doc__ or "")
    made.add_argument("--presets", nargs="+", default=list(PRESETS))
    made.add_argument("--groups", nargs="+", type=int, default=[1, 2, 4, 7])
    made.add_argument("--cores", type=int, default=2, help="cores of each group")
    made.add_argument("--every", type=int, default=1, help="updates between two mixes")
    made.add_argument("--rounds", type=int, default=5)
    made.add_argument("--seconds", type=float, default=15.0)
    args = made.parse_args()
    if args.quick:
        args.presets, args.groups, args.cores = ["cartpole-ppo"], [2], 1
        args.rounds, args.seconds = 1, 2.0
    report = Report("groups", args)
    for preset in args.presets:
        for num_groups in args.groups:
            bench_speed(report, preset, num_groups, args)
        bench_target(report, preset, args)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
