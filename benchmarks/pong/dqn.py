"""Compare DQN in its serial ratio (TianJi) with Ape-X, free-running, on Pong.

    python -m benchmarks.pong.dqn --side-by-side                     8 minutes, half the cores each
    python -m benchmarks.pong.dqn --presets pong-dqn --out R.json    one alone, on all cores ...
    python -m benchmarks.pong.dqn --presets pong-apex --out R.json   ... and the other, same file
    python -m benchmarks.pong.dqn --quick

Both have the same network, transport and batch size; the presets say where their numbers come from.
Every 10 seconds the returns over time, steps, updates, lag, ratio and GPU busy share so far are
written; a file that exists is completed, and the runs of the same preset and seed are replaced in
it. Rates are those after the first third of a run. Side by side, the GPU busy share is that of both
runs together. Figures tianji-4a and tianji-4b are drawn from src/tianji/figures/data/tianji-4.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.harness import (
    ROOT,
    command_line,
    commit,
    format_table,
    machine_facts,
    parser,
    versions,
)
from tianji.figures.apex.runs import MINUTES, PRESETS, Contest, run_contest
from tianji.figures.files import Data, Point

PACKAGES = ("tianji", "torch", "numpy", "gymnasium", "ale-py")
QUICK = (
    "--num-envs", "4", "--replay-size", "2000", "--warmup-steps", "64", "--batch-size", "16",
    "--updates-per-version", "1", "--plan.source", "rule", "--device", "cpu", "--num-actors", "1",
)  # fmt: skip

EVALUATION = ("--evaluate.episodes", "3", "--evaluate.cut-after-steps", "6000")
"""Games without random actions may never end; most take 2,000 to 4,000 steps."""


class Results:
    """The file of results, completed while runs go on."""

    def __init__(self, path: Path | None, facts: dict[str, Any]) -> None:
        self._path = path
        self._facts = facts
        before = json.loads(path.read_text()) if path is not None and path.exists() else {}
        self._before: list[Point] = before.get("points", [])

    def with_others(self, data: Data) -> dict[str, Any]:
        """Return the content of the file: these runs, and those of other presets and seeds."""
        ours = {(run["preset"], run["seed"]) for run in data["points"]}
        others = [run for run in self._before if (run["preset"], run["seed"]) not in ours]
        return {**self._facts, **data, "points": [*others, *data["points"]]}

    def keep(self, data: Data) -> None:
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            partial = self._path.with_suffix(".partial")
            partial.write_text(json.dumps(self.with_others(data), indent=1) + "\n")
            partial.replace(self._path)


def table(points: Sequence[Point]) -> str:
    rows = []
    for run in points:
        summary, settled = run["summary"] or {}, run["settled"] or {}
        greedy = [at["greedy_return"] for at in run["curve"] if at["greedy_return"] is not None]
        rows.append(
            [
                run["preset"],
                str(run["seed"]),
                _shown(summary.get("mean_return_100"), "{:.1f}"),
                _shown(summary.get("best_mean_return_100"), "{:.1f}"),
                _shown(greedy[-1] if greedy else None, "{:.1f}"),
                _shown(settled.get("steps_per_s"), "{:,.0f}"),
                _shown(settled.get("updates_per_s"), "{:,.1f}"),
                _shown(settled.get("trained_per_s"), "{:,.0f}"),
                _shown(settled.get("gpu_busy_share"), "{:.2f}"),
                _shown((summary.get("ratio") or {}).get("actual"), "{:.2f}"),
                _shown((summary.get("lag_versions") or {}).get("mean"), "{:.2f}"),
            ]
        )
    names = [
        "preset", "seed", "return", "best", "greedy", "steps/s", "updates/s", "trained/s",
        "GPU busy", "ratio", "lag",
    ]  # fmt: skip
    return format_table(names, rows)


def _shown(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)


def contest_of(args: argparse.Namespace) -> Contest:
    options = tuple(args.options)
    if args.evaluate_s > 0:
        options += ("--evaluate.period-s", str(args.evaluate_s), *EVALUATION)
    if args.quick:
        return Contest(args.presets, 3.0, args.side_by_side, args.seed, (*QUICK, *args.options))
    return Contest(args.presets, 60 * args.minutes, args.side_by_side, args.seed, options)


def main(argv: Sequence[str] | None = None) -> int:
    made = parser(__doc__ or "")
    made.add_argument("--minutes", type=float, default=MINUTES, help="training time of each run")
    made.add_argument("--side-by-side", action="store_true", help="at once, on parts of the cores")
    made.add_argument("--presets", nargs="+", default=list(PRESETS), choices=PRESETS)
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--evaluate-s", type=float, default=30.0, help="0: no greedy evaluations")
    made.add_argument("--folder", type=Path, help="keep the run folders here")
    made.add_argument(
        "--options", nargs=argparse.REMAINDER, default=[], help="words for `tianji train`; last"
    )
    args = made.parse_args(argv)
    out = args.out
    if out is None and not args.quick:
        stamp = datetime.now(UTC).strftime("%Y-%m-%d-%H%M%S")
        out = ROOT / "benchmarks" / "pong" / "results" / f"dqn-{stamp}.json"
    facts = {
        "figure": "tianji-4",
        "command": command_line("benchmarks.pong.dqn", argv),
        "commit": commit(),
        "machine": machine_facts(),
        "versions": versions(PACKAGES),
    }
    results = Results(out, facts)
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        folder = (args.folder or Path(scratch)).resolve()
        data = run_contest(contest_of(args), folder, results.keep)
    print(table(results.with_others(data)["points"]))
    if out is not None:
        print(f"\nwritten: {os.path.relpath(out)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
