"""How long until CartPole-v1 is learnt: us, Stable-Baselines3, RLlib, and the bare arithmetic.

python -m benchmarks.time_to_target.bench            all three questions, about 25 minutes
python -m benchmarks.time_to_target.bench --only ppo --seeds 5
python -m benchmarks.time_to_target.bench --quick    one seed, short limits, a smoke run
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks.harness import (
    OTHERS,
    ROOT,
    ContestantFailed,
    Report,
    alternate,
    median,
    parser,
    ratio,
    run_json,
    say,
    spread,
    train,
)
from benchmarks.limits import bare_actor_steps_per_s, bare_update_s

PEERS = ROOT / "benchmarks" / "time_to_target" / "peers"
PEERS_PYTHON = ROOT / ".peers" / "bin" / "python"
START_UP_LIMIT_S = 120.0
# Its CartPole example names the numbers of PPO; how many runners it starts depends on the version
# of the file: none named (the library's 2 x 1), or 4 x 16 and a learner process. Two runners with
# four environments do better than either on two cores.
RLLIB_SETTINGS = (
    ("2 runners x 1", "rllib, example", "2", "1", "0"),
    ("4 runners x 16, 1 learner", "rllib, example", "4", "16", "1"),
    ("2 runners x 4", "rllib, own choice", "2", "4", "0"),
)

Figures = dict[str, Any]


@dataclass(frozen=True)
class Contestant:
    """One row of the table; `family` groups settings of one system, the best of which counts."""

    name: str
    family: str
    run: Callable[[int], Figures]
    max_seeds: int = 1000


def ours(preset: str, target: float, max_s: float, *more: str) -> Callable[[int], Figures]:
    def run(seed: int) -> Figures:
        summary = train(
            preset,
            *more,
            *("--seed", str(seed), "--target-return", f"{target:g}", "--max-wall-s", f"{max_s:g}"),
            timeout_s=max_s + START_UP_LIMIT_S,
        )
        reached = summary["time_to_target_s"]
        return {
            **summary,
            f"time_to_{target:g}_s": reached,
            f"steps_to_{target:g}": summary["env_steps"] if reached is not None else None,
        }

    return run


def our_defaults(env: str, target: float, max_s: float) -> Callable[[int], Figures]:
    return ours("--env", target, max_s, env)


def peer(script: str, max_s: float, *arguments: str) -> Callable[[int], Figures]:
    def run(seed: int) -> Figures:
        figures = run_json(
            [PEERS_PYTHON, PEERS / script, "--seed", seed, "--max-s", max_s, *arguments],
            timeout_s=max_s + START_UP_LIMIT_S,
        )
        if script.startswith("rllib"):
            del figures[OTHERS]  # Ray's daemons are its own, but are not its children
        return figures

    return run


def ppo_contestants(args: argparse.Namespace) -> list[Contestant]:
    max_s = 5.0 if args.quick else 90.0
    found = [
        Contestant("tianji, to 300", "tianji", ours("cartpole-ppo", 300, max_s)),
        Contestant("tianji, to 475", "tianji", ours("cartpole-ppo", 475, max_s)),
    ]
    for threads in ("1", "2"):
        script = peer("sb3_ppo.py", max_s, "--threads", threads)
        found.append(Contestant(f"sb3 ppo, {threads} threads", "sb3", script))
    for name, family, runners, envs, learners in RLLIB_SETTINGS[: 1 if args.quick else None]:
        script = peer(
            "rllib_ppo.py",
            max_s,
            *("--runners", runners, "--envs-per-runner", envs, "--learners", learners),
        )
        found.append(Contestant(f"rllib ppo, {name}", family, script))
    return [c for c in found if c.family.split(",")[0] in args.contestants]


def dqn_contestants(args: argparse.Namespace) -> list[Contestant]:
    max_s, steps = (5.0, "2000") if args.quick else (240.0, "50000")
    found = [Contestant("tianji dqn, to 300", "tianji", ours("cartpole-dqn", 300, max_s))]
    for threads in ("1", "2"):
        script = peer("sb3_dqn.py", max_s, "--threads", threads, "--steps", steps)
        name = f"sb3 dqn, {threads} threads, all its {int(steps):,} steps"
        found.append(Contestant(name, "sb3", script, max_seeds=args.seeds))
    return [c for c in found if c.family in args.contestants]


def default_contestants(args: argparse.Namespace) -> list[Contestant]:
    """Nothing but --env, our preset, and the peer as constructed."""
    max_s = 5.0 if args.quick else 240.0
    found = [
        Contestant("tianji, defaults", "tianji", our_defaults("CartPole-v1", 475, max_s)),
        Contestant("tianji, preset", "preset", ours("cartpole-ppo", 475, max_s)),
    ]
    for threads in ("1", "2"):
        script = peer("sb3_ppo_defaults.py", max_s, "--threads", threads)
        found.append(Contestant(f"sb3, defaults, {threads} threads", "sb3", script))
    return [c for c in found if c.family != "sb3" or "sb3" in args.contestants]


def measure(
    report: Report, contestants: list[Contestant], seeds: range
) -> dict[str, list[Figures]]:
    """Every contestant with every seed, in turns; a contestant that fails says so and goes on."""
    results: dict[str, list[Figures]] = {contestant.name: [] for contestant in contestants}
    for contestant, seed in alternate(contestants, seeds):
        if seed - seeds.start >= contestant.max_seeds:
            continue
        try:
            figures = contestant.run(seed)
        except ContestantFailed as error:
            say(f"{contestant.name}, seed {seed}: {error}")
            figures = {"failed": str(error)}
        report.add(contestant.name, seed, figures)
        results[contestant.name].append(figures)
        say(f"{contestant.name}, seed {seed}: {_brief(figures)}")
    return results


def _brief(figures: Figures) -> str:
    keys = ("time_to_300_s", "time_to_475_s", "wall_s", "start_up_s", "best_mean_100")
    return ", ".join(f"{key} {figures[key]:.2f}" for key in keys if figures.get(key) is not None)


def column(figures: list[Figures], key: str) -> list[float | None]:
    return [figure.get(key) for figure in figures]


def best_of(
    family: str, contestants: list[Contestant], results: dict[str, list[Figures]], key: str
) -> float | None:
    """The median of the best setting of a system: be fair to peers."""
    medians = [
        median(column(results[contestant.name], key))
        for contestant in contestants
        if contestant.family == family
    ]
    reached = [value for value in medians if value is not None]
    return min(reached) if reached else None


def floor_s(runs: list[Figures]) -> list[float | None]:
    """Seconds that the steps and the updates of our runs would take as bare arithmetic: stepping
    plus forward passes on one core, the updates' matrix products on another, side by side."""
    torch.set_num_threads(1)
    config = runs[0]["config"]
    hidden = config["model"]["hidden"]
    update_s = bare_update_s(*_update_sizes(config["algorithm"], hidden))
    steps_per_s = bare_actor_steps_per_s(config["num_envs"], hidden)
    return [max(run["env_steps"] / steps_per_s, run["updates"] * update_s) for run in runs]


def _update_sizes(algorithm: Figures, hidden: list[int]) -> tuple[int, list[tuple[int, ...]]]:
    """Rows of one update, and the layers of every network that it trains."""
    if algorithm["name"] == "dqn":
        return algorithm["batch_size"], [(4, *hidden, 2)]
    return algorithm["minibatch_size"], [(4, *hidden, 2), (4, *hidden, 1)]


def show_floors(report: Report, runs_by_name: dict[str, list[Figures]]) -> None:
    """How far our runs that got there are from the work they could not have done without."""
    rows = []
    for name, runs in runs_by_name.items():
        finished = [run for run in runs if run.get("time_to_target_s") is not None]
        if finished:
            own, floors = column(finished, "time_to_target_s"), floor_s(finished)
            times = ratio(median(own), median(floors))
            rows.append([name, spread(own), spread(floors), f"{times:.1f}"])
    if rows:
        title = "Ours against the bare arithmetic of the same steps and updates"
        report.table(title, ["what", "ours s", "bare s", "ours / bare"], rows)


def show(
    report: Report,
    title: str,
    contestants: list[Contestant],
    results: dict[str, list[Figures]],
    targets: list[int],
) -> None:
    """One table: medians, spread, and how many times our time each took."""
    own = {
        target: best_of("tianji", contestants, results, f"time_to_{target}_s") for target in targets
    }
    headers = ["contestant", "runs", "start-up s"]
    for target in targets:
        headers += [f"time to {target} s", "x ours", f"steps to {target}"]
    headers += ["whole run s", "best mean"]
    rows = []
    for contestant in contestants:
        runs = results[contestant.name]
        row = [contestant.name, str(len(runs)), spread(column(runs, "start_up_s"), 1)]
        for target in targets:
            times = column(runs, f"time_to_{target}_s")
            if all(f"time_to_{target}_s" not in run for run in runs):
                row += ["", "", ""]
                continue
            times_ours = ratio(median(times), own[target])
            row += [spread(times), f"{times_ours:.1f}" if times_ours else "-"]
            row.append(spread(column(runs, f"steps_to_{target}"), 0))
        best = [run.get("best_mean_100", run.get("mean_return_100")) for run in runs]
        rows.append([*row, spread(column(runs, "wall_s"), 1), spread(best, 0)])
    report.table(title, headers, rows)


def is_ours(name: str) -> bool:
    return name.startswith("tianji")


def bench_ppo(report: Report, args: argparse.Namespace) -> None:
    contestants = ppo_contestants(args)
    results = measure(report, contestants, range(args.first_seed, args.first_seed + args.seeds))
    show(report, "PPO, CartPole-v1", contestants, results, [300, 475])
    show_floors(report, {name: runs for name, runs in results.items() if is_ours(name)})
    bounds = {300: {"sb3": 1 / 4, "rllib, example": 1 / 12}, 475: {"sb3": 1 / 4}}
    for target, families in bounds.items():
        key = f"time_to_{target}_s"
        own = best_of("tianji", contestants, results, key)
        for family, bound in families.items():
            theirs = best_of(family, contestants, results, key)
            if theirs is not None and "tianji" in args.contestants:
                report.check(f"ppo to {target}, ours / {family}", ratio(own, theirs), "<=", bound)


def bench_dqn(report: Report, args: argparse.Namespace) -> None:
    contestants = dqn_contestants(args)
    seeds = 1 if args.quick else args.dqn_seeds
    results = measure(report, contestants, range(args.first_seed, args.first_seed + seeds))
    show(report, "DQN, CartPole-v1", contestants, results, [300])
    ours_only = {name: runs for name, runs in results.items() if is_ours(name)}
    show_floors(report, ours_only)
    theirs = best_of("sb3", contestants, results, "wall_s")
    times = [run.get("time_to_300_s") for runs in ours_only.values() for run in runs]
    if theirs is None or not times:
        return
    what = "dqn to 300, ours / sb3's whole 50,000 steps"
    report.check(what, ratio(median(times), theirs), "<=", 1 / 4)
    in_time = [seconds for seconds in times if seconds is not None and seconds <= theirs / 4]
    what = "dqn, share of seeds that reach 300 in a quarter of that time"
    report.check(what, len(in_time) / len(times), ">=", 0.9)


def bench_defaults(report: Report, args: argparse.Namespace) -> None:
    contestants = default_contestants(args)
    results = measure(report, contestants, range(args.first_seed, args.first_seed + args.seeds))
    show(report, "PPO, CartPole-v1, defaults", contestants, results, [475])
    own, preset, theirs = (
        best_of(family, contestants, results, "time_to_475_s")
        for family in ("tianji", "preset", "sb3")
    )
    report.check("defaults to 475, over our preset", ratio(own, preset), "<=", 4.0)
    if theirs is not None:
        report.check("defaults to 475, over sb3's defaults", ratio(own, theirs), "<=", 0.5)


def arguments() -> argparse.Namespace:
    made = parser(__doc__ or "")
    made.add_argument("--seeds", type=int, default=5, help="seeds of every PPO contestant")
    made.add_argument("--dqn-seeds", type=int, default=10, help="seeds of our DQN")
    made.add_argument("--first-seed", type=int, default=1)
    made.add_argument("--only", choices=("ppo", "dqn", "defaults"))
    made.add_argument(
        "--contestants", nargs="+", default=["tianji", "sb3", "rllib"], metavar="NAME"
    )
    args = made.parse_args()
    if args.quick:
        args.seeds = 1
    return args


def main() -> int:
    args = arguments()
    if not PEERS_PYTHON.exists() and set(args.contestants) != {"tianji"}:
        say("The peers are not installed: run `make peers`, or give `--contestants tianji`.")
        return 2
    report = Report("time_to_target", args)
    questions = {"ppo": bench_ppo, "dqn": bench_dqn, "defaults": bench_defaults}
    for name, bench in questions.items():
        if args.only in (None, name):
            bench(report, args)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
