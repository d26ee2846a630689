"""Race `tianji train pong-ppo` against the serial loop to a mean score of 18, in pairs of a seed.

    python -m benchmarks.pong.pairs --folder runs/pairs --seeds 1           one pair, 10 minutes
    python -m benchmarks.pong.pairs --folder runs/pairs --seeds 1 2 3       what three pairs lack
    python -m benchmarks.pong.pairs --folder runs/pairs --contestants inline --seeds 1
    python -m benchmarks.pong.pairs --quick

The runs of a pair follow each other at once, because a shared machine changes its speed; every
second pair begins with the other contestant. The folder keeps a file for every run that has ended;
a command makes only what is missing, and the serial loop continues where --max-s has cut it. Times
are those of training: the start-up of neither counts. The bare emulator is measured right before
and after each run of ours (--bare-seconds), with one process on each core: the higher rate of the
two is what the settled rate of the run is compared with.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import alternate, median, parser, say
from benchmarks.pong.bare import Layout, measure
from benchmarks.pong.reporting import make_report
from benchmarks.pong.throughput import MUST, read_metrics, settled_steps_per_s
from tianji.figures.groups.runs import curve

SERIAL, OURS, INLINE = "serial", "tianji", "inline"
MOST_TIME, MOST_STEPS = 0.5, 1.2
CURVE_EVERY = 4
"""The learning curve keeps one of this many lines of metrics."""
KEPT = ("env_steps", "mean_return_100", "time_to_target_s", "steps_to_target", "steps_per_s")


def race(contestant: str, seed: int, args: argparse.Namespace) -> dict[str, Any]:
    """Train once; return the figures of the run."""
    folder = args.folder / f"{contestant}-{seed}"
    return _serial(seed, folder, args) if contestant == SERIAL else _ours(contestant, seed, args)


def _serial(seed: int, folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    out = folder.with_suffix(".report.json")
    words = ["--seed", seed, "--folder", folder, "--max-s", args.max_s, "--out", out]
    words += ["--target", args.target]
    if args.quick:
        words += ["--num-envs", 4, "--num-steps", 8, "--minibatch", 16, "--max-env-steps", 64]
    _call("benchmarks.pong.serial_loop", words, os.getcwd())
    (raw,) = json.loads(out.read_text())["raw"]
    return {name: raw.get(name) for name in KEPT}


def _ours(contestant: str, seed: int, args: argparse.Namespace) -> dict[str, Any]:
    words = ["train", args.preset, "--seed", seed, "--target-return", args.target, "--run", "race"]
    words += ["--max-wall-s", args.max_s]
    if contestant == INLINE:
        words += ["--engine", "inline", "--max-lag", 0]
    if args.quick:
        words += ["--num-envs", 2, "--max-env-steps", 256, "--plan.source", "rule"]
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        before = _bare(args)
        _call("tianji", words, scratch)
        after = _bare(args)
        run_dir = Path(scratch) / "runs" / "race"
        summary = json.loads((run_dir / "summary.json").read_text())
        settled, shown = settled_steps_per_s(run_dir), curve(read_metrics(run_dir))
    reached = summary["time_to_target_s"] is not None
    lag = summary["lag_versions"]["mean"]
    return {
        "env_steps": summary["env_steps"],
        "mean_return_100": summary["mean_return_100"],
        "time_to_target_s": summary["time_to_target_s"],
        "steps_to_target": summary["env_steps"] if reached else None,
        "steps_per_s": summary["env_steps"] / summary["wall_s"],
        "settled_steps_per_s": settled,
        "bare_steps_per_s": [before, after],
        "lag": lag,
        "inference": summary["inference"],
        "busy_share": summary["busy_share"],
        "gpu": summary["gpu"],
        "curve": {name: values[::CURVE_EVERY] for name, values in shown.items()},
    }


def _bare(args: argparse.Namespace) -> float:
    """Return the steps per second of the emulator alone."""
    cores = 1 if args.quick else len(os.sched_getaffinity(0))
    return measure(Layout(cores, 1, 16, 1), args.bare_seconds)


def _call(module: str, words: Sequence[Any], folder: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", module, *map(str, words)]
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=sys.stderr)


def is_over(found: dict[str, Any] | None, args: argparse.Namespace) -> bool:
    """Return whether a run needs no more training: it is there, and reached its target."""
    return found is not None and (args.quick or found["time_to_target_s"] is not None)


def geometric_mean(values: Sequence[float]) -> float | None:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def main(argv: Sequence[str] | None = None) -> int:
    made = parser(__doc__ or "")
    made.add_argument("--folder", type=Path, help="keeps the runs that have ended")
    made.add_argument("--preset", default="pong-ppo")
    made.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    made.add_argument(
        "--contestants", nargs="+", default=[SERIAL, OURS], choices=[SERIAL, OURS, INLINE]
    )
    made.add_argument("--target", type=float, default=18.0, help="mean of 100 full games")
    made.add_argument("--bare-seconds", type=float, default=4.0)
    made.add_argument("--max-s", type=float, default=420.0, help="training seconds of one run")
    args = made.parse_args(argv)
    if args.quick:
        args.bare_seconds = 0.2
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        if args.folder is None:
            if not args.quick:
                made.error("--folder is needed, except with --quick")
            args.folder, args.seeds = Path(scratch), [1]
        args.folder = args.folder.resolve()
        args.folder.mkdir(parents=True, exist_ok=True)
        for contestant, seed in alternate(args.contestants, args.seeds):
            kept = args.folder / f"{contestant}-{seed}.json"
            found = json.loads(kept.read_text()) if kept.exists() else None
            if not is_over(found, args):
                found = race(contestant, seed, args)
                kept.write_text(json.dumps(found, indent=1) + "\n")
                say(f"{contestant}, seed {seed}: {found['time_to_target_s']} s")
        return show(args)


def show(args: argparse.Namespace) -> int:
    """Print and write the table of all runs in the folder."""
    report = make_report("pairs", args)
    runs = {path.stem: json.loads(path.read_text()) for path in args.folder.glob("*-[0-9]*.json")
            if not path.stem.endswith(".report")}  # fmt: skip
    rows = []
    for name, found in sorted(runs.items()):
        contestant, _, seed = name.rpartition("-")
        report.add(contestant, int(seed), found)
        time_s, steps = found["time_to_target_s"], found["steps_to_target"]
        shown = ("-" if value is None else f"{value:,.0f}" for value in (time_s, steps))
        share = _over_bare(found)
        over_bare = "-" if share is None else f"{share:.2f}"
        rows.append([contestant, seed, *shown, f"{found['steps_per_s']:,.0f}", over_bare])
    headers = ["contestant", "seed", "s to target", "steps to target", "steps/s", "settled x bare"]
    report.table(f"Pong to {args.target:g}, PPO", headers, rows)
    for name, bound in (("time_to_target_s", MOST_TIME), ("steps_to_target", MOST_STEPS)):
        ratios = [
            runs[f"{OURS}-{seed}"][name] / runs[f"{SERIAL}-{seed}"][name]
            for seed in range(1, 100)
            if all((runs.get(f"{who}-{seed}") or {}).get(name) for who in (OURS, SERIAL))
        ]
        what = f"{name}, ours over serial, geometric mean of {len(ratios)} pairs"
        report.check(what, geometric_mean(ratios), "<=", bound)
    shares = [_over_bare(found) for name, found in runs.items() if name.startswith(OURS)]
    report.check("settled steps/s over bare, median", median(shares), ">=", MUST)
    return report.finish()


def _over_bare(found: dict[str, Any]) -> float | None:
    """Return the settled rate of one of our runs over the bare emulator around it."""
    bare = found.get("bare_steps_per_s")
    return found["settled_steps_per_s"] / max(bare) if bare else None


if __name__ == "__main__":
    sys.exit(main())
