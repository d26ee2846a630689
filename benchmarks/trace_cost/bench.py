"""What --trace costs: CPU time per unroll with it and without, and one span in a tight loop.

python -m benchmarks.trace_cost.bench            7 rounds, about 6 minutes
python -m benchmarks.trace_cost.bench --quick
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness import (
    Report,
    alternate,
    median,
    parser,
    ratio,
    run_json,
    say,
    spread,
    tianji_command,
)
from tianji.trace.merge import merge_spans
from tianji.trace.read import newest_trace, read_trace
from tianji.trace.spans import CAPACITY, Kind, item_id, open_spans

BOUND = 0.03
QUIET = (
    "--display", "off", "--no-tensorboard", "--checkpoint.period-s", "1e6", "--target-return",
    "none",
)  # fmt: skip


class Case(NamedTuple):
    """A run of a fixed amount of work, and a short one to take its start-up off."""

    preset: str
    engine: str
    env_steps: int
    start_up_steps: int

    @property
    def name(self) -> str:
        return f"{self.preset}, {self.engine}"


CASES = (
    Case("cartpole-ppo", "local", 250_000, 10_000),
    Case("cartpole-ppo", "inline", 250_000, 10_000),
    Case("cartpole-dqn", "local", 40_000, 4_000),
)


class Cost(NamedTuple):
    """Of one run."""

    cpu_s: float
    unrolls: int
    spans: int


def run(case: Case, env_steps: int, seed: int, trace: bool) -> Cost:
    """One `tianji train`, in a folder of its own; CPU time of all its processes."""
    command = tianji_command(
        "train", case.preset, "--engine", case.engine, "--max-env-steps", str(env_steps),
        "--seed", str(seed), *QUIET, *(["--trace"] if trace else []), "--json",
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        before_s = _children_s()
        summary = run_json(command, timeout_s=300, cwd=Path(scratch))
        cpu_s = _children_s() - before_s
        spans = 0
        if trace:
            timeline = read_trace(newest_trace(Path(scratch) / summary["run_dir"]))
            spans = sum(map(len, timeline.spans.values()))
    return Cost(cpu_s, sum(summary["lag_histogram"]), spans)


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(case: Case, seed: int, trace: bool) -> dict[str, float]:
    """Per unroll, start-up taken off."""
    whole = run(case, case.env_steps, seed, trace)
    start = run(case, case.start_up_steps, seed, trace)
    unrolls = whole.unrolls - start.unrolls
    return {
        "cpu_us_per_unroll": (whole.cpu_s - start.cpu_s) / unrolls * 1e6,
        "spans_per_unroll": (whole.spans - start.spans) / unrolls,
    }


def span_cost_us() -> dict[str, float]:
    """Of one span: recording it, and its part in writing the file at the end."""
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        spans = open_spans(Path(scratch), "actor-0")
        spans.subject = item_id(0, 1)
        timed = spans.timed(_nothing, Kind.INFER)
        loop_s, recorded_s = _loop_s(_nothing), _loop_s(timed)
        before_s = time.process_time()
        merge_spans(Path(scratch))
        merged_s = time.process_time() - before_s
    record_us = (recorded_s - loop_s) / CAPACITY * 1e6
    return {"record": record_us, "merge": merged_s / CAPACITY * 1e6}


def _nothing(_: object, __: int) -> None:
    """What a span is around, when nothing is to be measured but the span."""


def _loop_s(call: Callable[[object, int], None]) -> float:
    before_s = time.process_time()
    for number in range(CAPACITY):
        call(None, number)
    return time.process_time() - before_s


def compare(report: Report, case: Case, rounds: int, cost_us: dict[str, float]) -> None:
    results: dict[str, list[dict[str, float]]] = {"off": [], "on": []}
    for way, seed in alternate(list(results), range(1, rounds + 1)):
        figures = measure(case, seed, trace=way == "on")
        results[way].append(figures)
        report.add(f"{case.name}, trace {way}", seed, figures)
        say(f"{case.name}, trace {way}: {figures['cpu_us_per_unroll']:.0f} us per unroll")
    cpu = {way: [row["cpu_us_per_unroll"] for row in rows] for way, rows in results.items()}
    pairs = zip(cpu["on"], cpu["off"], strict=True)
    more: list[float | None] = [on / off - 1 for on, off in pairs]
    spans = median([row["spans_per_unroll"] for row in results["on"]])
    direct = {
        part: ratio((spans or 0.0) * each_us, median(list(cpu["off"])))
        for part, each_us in cost_us.items()
    }
    rows = [
        ["CPU time per unroll, us, off", spread(list(cpu["off"]), 0)],
        ["CPU time per unroll, us, on", spread(list(cpu["on"]), 0)],
        ["on / off - 1, seed by seed", spread(more, 3)],
        ["spans per unroll", f"{spans:.0f}"],
        *([f"share of a span: {part}", f"{share:.4f}"] for part, share in direct.items()),
    ]
    report.table(case.name, ["figure", "value"], rows)
    own = sum(share or 0.0 for share in direct.values())
    report.check(f"{case.name}: spans, recorded and merged / CPU time", own, "<=", BOUND)


def main() -> int:
    made = parser(__doc__ or "")
    made.add_argument("--rounds", type=int, default=7)
    args = made.parse_args()
    report = Report("trace_cost", args)
    repeats: list[dict[str, Any]] = [span_cost_us() for _ in range(1 if args.quick else 5)]
    cost_us = {part: median([r[part] for r in repeats]) or 0.0 for part in ("record", "merge")}
    report.note(span_cost_us=cost_us)
    rows = [[part, f"{each_us:.2f}"] for part, each_us in cost_us.items()]
    report.table("One span", ["part", "us"], rows)
    for case in CASES:
        compare(report, case, 1 if args.quick else args.rounds, cost_us)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
