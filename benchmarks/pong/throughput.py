"""Measure training on Pong against the bare emulator: what share of its steps is left?

    python -m benchmarks.pong.throughput                    pong-ppo for 60 s, bare before and after
    python -m benchmarks.pong.throughput --seconds 120 --preset MY-PRESET
    python -m benchmarks.pong.throughput --options device=cuda inference=actor-gpu
    python -m benchmarks.pong.throughput --quick

The rate of training is that of its metrics after the first third of the run, when graphs are
recorded and the lag has settled. The bare rate is the higher one of before and after, each of the
best layout.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

import tianji
from benchmarks.harness import parser, ratio, say
from benchmarks.pong.bare import Layout, best_layout, measure, usual_layouts
from benchmarks.pong.reporting import make_report

SETTLED_SHARE = 1 / 3
MUST = 0.75


def train(preset: str, seconds: float, options: Sequence[str]) -> dict[str, Any]:
    """Train for so long; return the summary, with the steps per second once settled."""
    pairs = (option.split("=", 1) for option in options)
    changes: dict[str, Any] = {key: yaml.safe_load(value) for key, value in pairs}
    trained = tianji.train(
        preset,
        max_wall_s=seconds,
        target_return=None,
        observe={"display": "plain"},
        **changes,
    )
    rate = settled_steps_per_s(Path(trained.summary["run_dir"]))
    return {**dict(trained.summary), "settled_steps_per_s": rate}


def read_metrics(run_dir: Path) -> list[dict[str, Any]]:
    lines = (run_dir / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def settled_steps_per_s(run_dir: Path) -> float:
    """Return the steps per second of a run after its first third."""
    records = read_metrics(run_dir)
    begin_s = SETTLED_SHARE * records[-1]["wall_s"]
    settled = [record for record in records if record["wall_s"] >= begin_s]
    first, last = settled[0], settled[-1]
    steps, elapsed = last["env_steps"] - first["env_steps"], last["wall_s"] - first["wall_s"]
    return float(steps / elapsed)


def main(argv: Sequence[str] | None = None) -> int:
    made = parser(__doc__ or "")
    made.add_argument("--preset", default="pong-ppo")
    made.add_argument("--seconds", type=float, default=60.0, help="length of the training")
    made.add_argument("--bare-seconds", type=float, default=5.0)
    made.add_argument("--options", nargs="*", default=[], metavar="KEY=VALUE")
    made.add_argument("--layouts", nargs="+", type=Layout.parse, metavar="PxGxNxT")
    args = made.parse_args(argv)
    layouts = args.layouts or usual_layouts(len(os.sched_getaffinity(0)))
    if args.quick:
        layouts, args.bare_seconds, args.seconds = [Layout(1, 1, 2, 1)], 0.2, 8.0
        args.options += ["num_envs=2"]
    report = make_report("throughput", args)
    best, rates = best_layout(layouts, args.bare_seconds)
    before = rates[best][-1]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        found = train(args.preset, args.seconds, args.options)
    say(f"{args.preset}: {found['settled_steps_per_s']:,.0f} steps/s")
    after = measure(best, args.bare_seconds)
    bare, rate = max(before, after), found["settled_steps_per_s"]
    report.add(args.preset, 1, found)
    report.note(best_layout=str(best), bare_before=before, bare_after=after)
    share = ratio(rate, bare)
    lag, busy = found["lag_versions"]["mean"], found["busy_share"]["learner"]
    rows = [
        ["bare, before", f"{before:,.0f}", "", "", ""],
        [args.preset, f"{rate:,.0f}", f"{share:.2f}", f"{lag:.2f}", f"{busy:.2f}"],
        ["bare, after", f"{after:,.0f}", "", "", ""],
    ]
    title = f"Pong: training over the bare emulator ({best.in_words})"
    report.table(title, ["what", "agent steps/s", "x bare", "lag", "learner busy"], rows)
    report.check("agent steps/s over bare", share, ">=", MUST)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
