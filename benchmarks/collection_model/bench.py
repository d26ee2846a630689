"""The collection-time model against the experiment: fitted on one actor, held against all others.

python -m benchmarks.collection_model.bench             about 4 minutes
python -m benchmarks.collection_model.bench --figure    and write the data of figure equation-1
python -m benchmarks.collection_model.bench --quick     a smoke run

Every setting of `tianji bench comm`'s sweep is run five times in alternation, among them the run of
one actor several times at once; medians go into the model. The receiver's idle cost comes with it.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.harness import (
    ROOT,
    Report,
    alternate,
    command_line,
    commit,
    machine_facts,
    parser,
    say,
    versions,
)
from tianji.bench.experiment import idle_share, measure, measure_loaded
from tianji.bench.prediction import Model, worst_error
from tianji.bench.sweep import FIGURE_SIZE, SAMPLE_TIMES_S, loads, make_point, settings
from tianji.figures.files import write_data

TURNS = 5
CORES = len(os.sched_getaffinity(0))
Setting = tuple[int, int, float]


@dataclass(frozen=True)
class Full:
    """Several runs of one actor at once."""

    size_bytes: int
    num_runs: int


def run(
    report: Report, turns: int, point_s: float, todo: list[Setting]
) -> tuple[list[dict[str, Any]], dict[tuple[int, int], dict[str, Any]]]:
    """One median measurement per setting, and what one actor takes on a full machine."""
    found: dict[Setting, list[dict[str, Any]]] = defaultdict(list)
    loaded: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
    sizes = {size for size, _, _ in todo}
    full = [Full(size, n) for size, n in loads(CORES) if size in sizes]
    for setting, turn in alternate([*todo, *full], range(1, turns + 1)):
        if isinstance(setting, Full):
            point = make_point(setting.size_bytes, 1, 0.0, point_s)
            figures: dict[str, Any] = measure_loaded(point, setting.num_runs)
            report.add("one actor, several times at once", turn, {**asdict(setting), **figures})
            loaded[setting.size_bytes, setting.num_runs].append(figures)
        else:
            figures = measure(make_point(*setting, point_s))
            report.add("tianji", turn, figures)
            found[setting].append(figures)
        say(f"turn {turn}: {setting}")
    by_load = {load: _medians(repeats) for load, repeats in loaded.items()}
    return [_medians(found[setting]) for setting in todo], by_load


def _medians(repeats: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        key: statistics.median(repeat[key] for repeat in repeats)
        if isinstance(value, float) and key != "sample_time_s"
        else value
        for key, value in repeats[0].items()
    }


def show(report: Report, points: list[dict[str, Any]]) -> None:
    rows = [
        [
            f"{p['size_bytes'] >> 10} KB",
            str(p["actors"]),
            f"{p['sample_time_s'] * 1e3:g} ms",
            f"{p['collection_s_per_10k']:.3g}",
            f"{p['predicted_s_per_10k']:.3g}",
            "fitted" if p["is_fitted"] else f"{p['prediction_error']:+.1%}",
            f"{p['printed_equation_s_per_10k']:.3g}",
            p["critical_path"],
            f"{p['sender_cpu_us']:.1f} + {p['receiver_cpu_us']:.1f}",
            f"{p['mb_per_s']:,.0f}",
        ]
        for p in points
    ]
    headers = ["size", "actors", "sample time", "measured s", "model s", "error", "as printed s",
               "critical path", "CPU us", "MB/s"]  # fmt: skip
    report.table("collection of 10,000 messages, medians", headers, rows)


def write_figure_data(points: list[dict[str, Any]], saturation: list[dict[str, Any]]) -> None:
    """Write the data of figure equation-1."""
    facts = {
        "figure": "equation-1",
        "command": command_line("benchmarks.collection_model.bench"),
        "commit": commit(),
        "machine": machine_facts(),
        "versions": versions(),
    }
    path = ROOT / "src" / "tianji" / "figures" / "data" / "equation-1.json"
    write_data({**facts, "points": points, "saturation": saturation}, path)


def main() -> int:
    made = parser(__doc__ or "")
    made.formatter_class = argparse.RawDescriptionHelpFormatter
    made.add_argument(
        "--figure", action="store_true", help="write the data of equation-1 (quick runs write none)"
    )
    args = made.parse_args()
    turns, point_s = (1, 0.1) if args.quick else (TURNS, 0.6)
    todo = [s for s in settings() if not args.quick or s[0] == FIGURE_SIZE]
    report = Report("collection_model", args)
    points, loaded = run(report, turns, point_s, todo)
    model = Model(points, loaded, CORES)
    points = [{**point, **model.predict(point)} for point in points]
    show(report, points)
    saturation = [model.saturation(FIGURE_SIZE, sample_s) for sample_s in (0.0, *SAMPLE_TIMES_S)]
    report.note(points=points, saturation=saturation)
    if args.figure and not args.quick:
        write_figure_data(points, saturation)
    for row in saturation:
        print(
            f"512 KB, sample time {row['sample_time_s'] * 1e3:g} ms: the critical path leaves the "
            f"actors at {row['actors']:.1f} of them, for the {row['then']}"
        )
    report.check(
        "largest error of the model, points not fitted on", worst_error(points), "<=", 0.15
    )
    report.check("idle receiver, share of a core", idle_share(), "<=", 0.01)
    return report.finish()


if __name__ == "__main__":
    raise SystemExit(main())
