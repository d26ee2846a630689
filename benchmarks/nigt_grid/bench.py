"""Policy gradients from unequal workers: the runs behind `tianji figure nigt-...`, and the grid of
the whole paper.

    .venv/bin/python -m benchmarks.nigt_grid.bench --list
    .venv/bin/python -m benchmarks.nigt_grid.bench --runs FOLDER --processes 16 --limit-s 540
    .venv/bin/python -m benchmarks.nigt_grid.bench --runs FOLDER --collect
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import commit, format_table
from benchmarks.nigt_grid.grids import of_figures, of_paper, of_seconds
from tianji.figures.files import describe, write_data
from tianji.figures.gathering.grid import Grid
from tianji.figures.gathering.measure import estimate, make_runs, panels_data, read_runs
from tianji.figures.gathering.panels import COUNTED, Panel
from tianji.figures.gathering.picture import band_text, draw_panels
from tianji.figures.gathering.trial import core_s
from tianji.figures.style import save

DATA = Path(__file__).resolve().parents[2] / "src" / "tianji" / "figures" / "data"

HEADERS = (
    "panel", "method", "step", "M", "rounds", "gradients", "discarded", "return at the end",
    "time to the same return / first method",
)  # fmt: skip


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    made = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    made.add_argument("--quick", action="store_true", help="CartPole, seconds; means nothing")
    made.add_argument("--whole", action="store_true", help="the paper's grid, not the figures'")
    made.add_argument("--only", nargs="*", help="these figures; all when not given")
    made.add_argument("--runs", type=Path, help="folder for the runs, one file each")
    made.add_argument("--known", type=Path, nargs="*", default=[], help="folders of more runs")
    made.add_argument("--processes", type=int, default=1)
    made.add_argument("--limit-s", type=float, default=float("inf"), help="begin nothing later")
    made.add_argument("--list", action="store_true", help="say what there is to do, do nothing")
    made.add_argument("--collect", action="store_true", help="make the figures' data of the runs")
    return made.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    args = parse(arguments)
    wanted = of_seconds() if args.quick else of_paper() if args.whole else of_figures()
    figures = {name: wanted.figures[name] for name in args.only or wanted.figures}
    if args.list:
        print_list(wanted.grid, figures)
        return 0
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        folder = args.runs or Path(scratch)
        if not args.collect:
            left = run(args, wanted.grid, figures, folder)
            print(f"{left} runs are left" if left else "all runs are there", flush=True)
        if args.collect or args.quick:
            out = Path(scratch) if args.quick else DATA
            collect(wanted.grid, figures, [*args.known, folder], out)
    return 0


def run(
    args: argparse.Namespace, grid: Grid, figures: Mapping[str, Sequence[Panel]], folder: Path
) -> int:
    panels = [panel for some in figures.values() for panel in some]
    left = make_runs(
        lambda runs: grid.wanted(panels, runs), folder, args.processes, args.limit_s,
        read_runs(*args.known),
    )  # fmt: skip
    return len(left)


def print_list(grid: Grid, figures: Mapping[str, Sequence[Panel]]) -> None:
    """Figures share runs: what they need together is less than the sum."""
    rows = []
    everything = [panel for some in figures.values() for panel in some]
    for name, panels in {**figures, "together": everything}.items():
        num_runs, seconds = estimate(grid, panels)
        longest_s = max(map(core_s, grid.tuning(panels)))
        rows.append([name, f"{num_runs:,}", f"{seconds:,.0f}", f"{longest_s:.0f}"])
    print(format_table(["figure", "runs", "core-seconds, about", "longest run (s)"], rows))


def collect(
    grid: Grid, figures: Mapping[str, Sequence[Panel]], folders: Sequence[Path], out: Path
) -> None:
    """The data of every figure, its picture in the quick form, and its numbers as a table."""
    runs = read_runs(*folders)
    for name, panels in figures.items():
        data = describe(name) | panels_data(grid, panels, runs) | {"commit": commit()}
        write_data(data, out / f"{name}.json")
        if out != DATA:
            save(draw_panels(data, name), out / f"{name}.png")
        print(f"\n{name}\n{format_table(HEADERS, list(table(panels, data['points'])))}")
        for panel, point in zip(panels, data["points"], strict=True):
            judge(panel, point)


def table(panels: Sequence[Panel], points: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    for panel, point in zip(panels, points, strict=True):
        for method, tuned in point["methods"].items():
            work = [f"{tuned[key]:,}" for key in ("rounds", "gradients", "discarded")]
            ratio = point["times_to_target"].get(method)
            yield [
                panel.name, method, f"2^{tuned['chosen']['exponent']}",
                str(tuned["chosen"]["m"]) if method in COUNTED else "-", *work,
                band_text(*point["ends"][method]), "1" if ratio is None else band_text(*ratio),
            ]  # fmt: skip


def judge(panel: Panel, point: Mapping[str, Any]) -> None:
    """The first method must not end below another by more than the band: best if its median is in
    the other's band or above; where only the bands overlap, that is said."""
    first, *others = panel.methods
    for other in others:
        mine, theirs = point["ends"][first], point["ends"][other]
        verdict = "MISSED" if mine[2] < theirs[0] else "overlap" if mine[1] < theirs[0] else "met"
        print(f"{verdict:8}{panel.name}: {first} {band_text(*mine)}, {other} {band_text(*theirs)}")


if __name__ == "__main__":
    sys.exit(main())
