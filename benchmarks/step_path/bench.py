"""Which files does one environment step pass, from the environment to the update and back?

python -m benchmarks.step_path.bench                     PPO, inline and local, three runs each
python -m benchmarks.step_path.bench --engines inline
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.harness import ROOT, Report, parser, say, train
from benchmarks.step_path import recorder
from benchmarks.step_path.marked import CLOSES_AT, UNROLL_LENGTH
from benchmarks.step_path.path import Stop, merge, visited_always

NUM_ENVS = 8
EXPECTED_ROOMS = {"actor", "algorithms", "buffer", "envs"}
SETTINGS = (
    *("--env", "benchmarks.step_path.marked:make", "--num-envs", str(NUM_ENVS)),
    *("--num-actors", "1", "--unroll-length", str(UNROLL_LENGTH), "--target-return", "none"),
    *("--plan.source", "rule"),  # a measured plan steps the environment before the run does
    *("--max-env-steps", str(2 * CLOSES_AT * NUM_ENVS)),
)


def record(engine: str, src: Path, seed: int) -> list[dict[str, Any]]:
    """Train once; return what each process recorded."""
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        folder = Path(scratch)
        recorder.Window.create(folder)
        inject = ROOT / "benchmarks" / "step_path" / "inject"
        variables = {
            recorder.FOLDER_VARIABLE: str(folder),
            recorder.PACKAGE_VARIABLE: str(src / "tianji"),
            "PYTHONPATH": os.pathsep.join(map(str, (inject, src, ROOT))),
        }
        train("cartpole-ppo", "--engine", engine, *SETTINGS, "--seed", str(seed), env=variables)
        found = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    if not found:
        raise RuntimeError(f"no process of the {engine} run recorded anything")
    return found


def path_of(engine: str, src: Path, runs: int) -> tuple[list[Stop], list[Stop]]:
    merged = []
    for seed in range(1, runs + 1):
        parts = record(engine, src, seed)
        merged.append(merge(parts, has_supervisor=len(parts) > 1))
        say(f"{engine}, run {seed}: {len(merged[-1])} files")
    always, sometimes = visited_always(merged)
    missing = EXPECTED_ROOMS - {stop.file.partition("/")[0] for stop in always}
    if missing:
        raise RuntimeError(f"the window of the {engine} run holds no update: {missing} not visited")
    return always, sometimes


def show(report: Report, engine: str, stops: list[Stop]) -> None:
    rows = [
        [str(number), stop.file, ", ".join(stop.processes), _short(stop.functions)]
        for number, stop in enumerate(stops, 1)
    ]
    title = f"Files that a step passes, {engine}: {_counted(stops)}"
    report.table(title, ["", "file", "in", "functions"], rows)


def _counted(stops: list[Stop]) -> str:
    carrying = sum(not stop.is_watching for stop in stops)
    return f"{len(stops)}, of which {carrying} carry experience"


def _short(functions: list[str]) -> str:
    named = [name for name in functions if "<" not in name.rpartition(".")[2]]
    return ", ".join(named[:6]) + (f" and {len(named) - 6} more" if len(named) > 6 else "")


def main(argv: list[str] | None = None) -> int:
    made = parser(__doc__ or "")
    made.add_argument("--engines", nargs="+", default=["inline", "local"])
    made.add_argument("--runs", type=int, default=3, help="a file counts if every run visits it")
    made.add_argument("--src", type=Path, default=ROOT / "src", help="trace this tree instead")
    args = made.parse_args(argv)
    runs = 1 if args.quick else args.runs
    report = Report("step_path", args)
    for engine in args.engines:
        always, sometimes = path_of(engine, args.src.resolve(), runs)
        show(report, engine, always)
        if sometimes:
            names = ", ".join(stop.file for stop in sometimes)
            print(f"\nvisited in some runs only, not counted: {names}")
        figures = {
            "files": len(always),
            "carrying": sum(not stop.is_watching for stop in always),
            "path": [stop.to_json() for stop in always],
            "sometimes": [stop.to_json() for stop in sometimes],
        }
        report.add(engine, 0, figures)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
