"""Train Pong in the styles that are not TianJi's own, for a given time, with several seeds.

    python -m benchmarks.pong.styles --folder runs/styles --seeds 1 2 3      one after the other
    taskset -c 0-3 python -m benchmarks.pong.styles --folder runs/styles --styles seed --seeds 2
    python -m benchmarks.pong.styles --quick

The folder keeps a file for every run that has ended; a command makes only what is missing, on the
cores that it may use. Several commands with other styles or seeds may share a folder and a GPU. The
table and the report show all runs of the folder. TianJi's own style is measured by `pairs`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness import machine_facts, parser, say
from benchmarks.pong.reporting import make_report
from tianji.figures.apex.runs import MINUTES, Contest, run_contest


class Style(NamedTuple):
    """The preset of a style, and words for `tianji train`: always, at full size, for --quick."""

    preset: str
    words: tuple[str, ...]
    full: tuple[str, ...]
    quick: tuple[str, ...]


FEW_ROWS = ("--algorithm.minibatches", "1")
STYLES = {
    "impala": Style(
        "pong-impala",
        ("--style", "impala"),
        ("--inference", "actor-gpu"),
        (*FEW_ROWS, "--inference", "actor-cpu"),
    ),
    "seed": Style("pong-impala", ("--style", "seed"), (), FEW_ROWS),
    "apex": Style(
        "pong-apex",  # the preset is of that style
        (),
        (),
        ("--replay-size", "2000", "--warmup-steps", "64", "--batch-size", "16"),
    ),
}
QUICK = ("--num-envs", "4", "--plan.source", "rule", "--device", "cpu", "--num-actors", "1")
"""A few seconds on a CPU."""


def words_of(style: Style, is_quick: bool) -> list[str]:
    more = (*QUICK, *style.quick) if is_quick else style.full
    return [*style.words, *more]


def train(style: str, seed: int, args: argparse.Namespace) -> dict[str, Any]:
    """Train once; return the curve, the settled rates and what is kept of the summary."""
    known = STYLES[style]
    words = words_of(known, args.quick)
    contest = Contest((known.preset,), 60 * args.minutes, seed=seed, options=words)
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix="run-", dir=args.folder) as scratch:
        data = run_contest(contest, Path(scratch))
    (point,) = data["points"]
    others = {
        "style": style,
        "minutes": args.minutes,
        "cores": cores,
        "gpu": data["gpu"],
        "machine": machine_facts(),
    }
    return {**point, **others}


def show(args: argparse.Namespace) -> int:
    """Print and write the table of all runs in the folder."""
    report = make_report("styles", args)
    rows = []
    for path in sorted(args.folder.glob("*.json")):
        run = json.loads(path.read_text())
        report.add(run["style"], run["seed"], run)
        summary, settled = run["summary"], run["settled"] or {}
        returns = summary["mean_return_100"], summary["best_mean_return_100"]
        rows.append([
            run["style"], str(run["seed"]), f"{run['minutes']:g}", str(run["cores"]),
            f"{summary['env_steps']:,}",
            *("-" if value is None else f"{value:.1f}" for value in returns),
            f"{settled.get('steps_per_s', 0):,.0f}", f"{summary['lag_versions']['mean']:.2f}",
        ])  # fmt: skip
    headers = ["style", "seed", "minutes", "cores", "steps", "return", "best", "steps/s", "lag"]
    report.table("Pong, training time in minutes", headers, rows)
    return report.finish()


def main(argv: Sequence[str] | None = None) -> int:
    made = parser(__doc__ or "")
    made.add_argument("--folder", type=Path, help="keeps the runs that have ended")
    made.add_argument("--styles", nargs="+", default=list(STYLES), choices=list(STYLES))
    made.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    made.add_argument("--minutes", type=float, default=MINUTES, help="training time of each run")
    args = made.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        if args.quick:
            args.folder, args.seeds, args.minutes = Path(scratch), [1], 0.05
        if args.folder is None:
            made.error("--folder is needed, except with --quick")
        args.folder = args.folder.resolve()
        args.folder.mkdir(parents=True, exist_ok=True)
        for seed in args.seeds:
            for style in args.styles:
                kept = args.folder / f"{style}-{seed}.json"
                if not kept.exists():
                    found = train(style, seed, args)
                    draft = kept.with_suffix(".draft")  # other commands read the folder
                    draft.write_text(json.dumps(found, indent=1) + "\n")
                    draft.replace(kept)
                    say(f"{style}, seed {seed}: {found['summary']['mean_return_100']}")
        return show(args)


if __name__ == "__main__":
    sys.exit(main())
