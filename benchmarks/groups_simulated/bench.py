"""Does the simulator agree with groups that run for real, on one host and on several?

    python -m benchmarks.groups_simulated.bench                      environments that sleep
    python -m benchmarks.groups_simulated.bench --tasks sleeping cartpole-ppo cartpole-dqn \
        --groups 1 2 4 7 --cores 2 --hosts                           on 16 cores, without Ray
    python -m benchmarks.groups_simulated.bench --quick

One profile of one group for each task; then every number of groups for real, in turns, and
simulated from that profile. Nothing is fitted to the runs that the simulation is compared with.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, NamedTuple

from benchmarks.groups_simulated.steady import steady_rate
from benchmarks.groups_simulated.tasks import SLEEPING, Task, group_words, make_task
from benchmarks.harness import ROOT, Report, alternate, median, parser, say, spread, train
from benchmarks.namespaces import why_not
from benchmarks.ray_nodes import RayNodes, ray_nodes
from tianji.config.machine import read_machine
from tianji.config.run import Combine
from tianji.figures.commands import only_on

BOUND = 0.15
FOREVER = ("--target-return", "none", "--max-env-steps", "1000000000", "--plan.source", "rule")
TIMEOUT_S = 240.0
KEPT = ("rates_per_s", "lag_versions", "groups", "hosts", "wall_s", "busy_share", "others_cores")


class Setting(NamedTuple):
    """Groups in one place. num_hosts: 0 for the local engine."""

    num_groups: int
    combine: Combine
    num_hosts: int = 0

    @property
    def where(self) -> str:
        return f"ray, {self.num_hosts} hosts" if self.num_hosts else "local"

    def name(self, task: Task) -> str:
        return f"{task.name}, {self.where}, {self.num_groups} groups, {self.combine}"


def cores_of(num_groups: int, cores_each: int) -> tuple[int, ...]:
    """Return the cores of all groups; where there are too few, they share what there is."""
    return read_machine().cores[: num_groups * cores_each]


def run_local(task: Task, setting: Setting, args: argparse.Namespace) -> dict[str, Any]:
    words = (*task.words[1:], *group_words(setting.num_groups, setting.combine))
    options = (*FOREVER, "--max-wall-s", str(args.seconds))
    cores = cores_of(setting.num_groups, args.cores)
    with only_on(cores):
        return train(
            task.words[0], *words, *options, env={"PYTHONPATH": str(ROOT)}, timeout_s=TIMEOUT_S
        )


def run_hosts(
    task: Task, setting: Setting, args: argparse.Namespace, nodes: RayNodes
) -> dict[str, Any]:
    words = (*task.words[1:], *group_words(setting.num_groups, setting.combine))
    options = (*FOREVER, "--max-wall-s", str(args.seconds))
    return train(
        *(task.words[0], *words, *options, "--engine", "ray", "--ray-address", nodes.address),
        env={"PYTHONPATH": str(ROOT)},
        prefix=nodes.prefix,
        timeout_s=TIMEOUT_S,
    )


def measure(report: Report, task: Task, setting: Setting, turn: int, summary: Any) -> float:
    """Keep the figures of a run; return its steady rate."""
    received = steady_rate(summary["metrics"], setting.num_groups, task.steps_per_version)
    kept = {name: summary[name] for name in KEPT if name in summary}
    report.add(setting.name(task), turn, {"received_per_s": received, **kept})
    say(f"{setting.name(task)}: {received:,.0f} received/s")
    return received


def compare(
    report: Report, task: Task, runs: dict[Setting, list[float]], args: argparse.Namespace
) -> None:
    """Hold the medians of the real runs against the simulation."""
    rows = []
    for setting, rates in runs.items():
        num_cores = len(cores_of(setting.num_groups, args.cores))
        if setting.num_hosts:
            num_cores = args.cores
        found = task.simulated(
            setting.num_groups, setting.combine, num_cores, max(1, setting.num_hosts)
        )
        real = median(rates)
        ratio = found.received / real if real else None
        rows.append([
            setting.where, str(setting.num_groups), setting.combine, spread(rates, 0),
            f"{found.received:,.0f}", "none" if ratio is None else f"{ratio:.3f}",
            found.bottleneck,
        ])  # fmt: skip
        error = None if ratio is None else abs(ratio - 1)
        report.check(f"{setting.name(task)}: error of the simulation", error, "<=", BOUND)
        report.note(**{f"simulated: {setting.name(task)}": found.received})
    headers = ["where", "groups", "combine", "real received/s", "simulated", "ratio", "limit"]
    report.table(task.name, headers, rows)


def local_settings(groups: Sequence[int], combines: Sequence[Combine]) -> list[Setting]:
    alone = [Setting(1, combines[0])] if 1 in groups else []
    return [*alone, *(Setting(n, combine) for n in groups if n > 1 for combine in combines)]


def bench(report: Report, name: str, args: argparse.Namespace) -> None:
    share = replace(read_machine(), cores=cores_of(1, args.cores), nodes=(), siblings=())
    with only_on(share.cores):
        task = make_task(name, share)
    report.note(**{f"profile of {name}": task.profile.model_dump(mode="json")})
    settings = local_settings(args.groups, args.combine)
    runs: dict[Setting, list[float]] = {setting: [] for setting in settings}
    for setting, turn in alternate(settings, range(1, args.rounds + 1)):
        summary = run_local(task, setting, args)
        runs[setting].append(measure(report, task, setting, turn, summary))
    for num_hosts in args.hosts:
        of_hosts = [Setting(num_hosts, "average", num_hosts)]
        runs |= {setting: [] for setting in of_hosts}
        with ray_nodes(num_hosts + 1) as nodes:
            for host in range(1, num_hosts + 1):
                nodes.join(host)
            for setting, turn in alternate(of_hosts, range(1, args.rounds + 1)):
                summary = run_hosts(task, setting, args, nodes)
                runs[setting].append(measure(report, task, setting, turn, summary))
    compare(report, task, runs, args)


def main() -> int:
    made = parser(__doc__ or "")
    made.add_argument("--tasks", nargs="+", default=[SLEEPING], help="sleeping, or presets")
    made.add_argument("--groups", nargs="+", type=int, default=[1, 2, 3])
    made.add_argument("--combine", nargs="+", default=["average", "gradients"])
    made.add_argument("--cores", type=int, default=2, help="cores of each group, if there are some")
    made.add_argument("--hosts", nargs="*", type=int, default=[2, 3], help="namespaces with Ray")
    made.add_argument("--rounds", type=int, default=3)
    made.add_argument("--seconds", type=float, default=16.0)
    args = made.parse_args()
    if args.quick:
        args.tasks, args.groups, args.hosts, args.rounds = [SLEEPING], [2], [], 1
        args.combine, args.seconds = ["average"], 6.0
    report = Report("groups_simulated", args, packages=("ray",))
    reason = why_not() if find_spec("ray") is not None else "Ray is not installed"
    if args.hosts and reason:
        say(f"No hosts of their own here: {reason}.")
        report.note(no_hosts=reason)
        args.hosts = []
    for name in args.tasks:
        bench(report, name, args)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
