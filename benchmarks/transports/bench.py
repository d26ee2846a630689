"""The virtual communication experiment over our stream and over what could be used instead.

python -m benchmarks.transports.bench                      everything, about 15 minutes
python -m benchmarks.transports.bench --part a --only tianji,iceoryx2
python -m benchmarks.transports.bench --check              compare every byte, no figures
python -m benchmarks.transports.bench --figures            and write the data of the figures
python -m benchmarks.transports.bench --quick              a smoke run
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.harness import Report, alternate, command_line, parser, say
from benchmarks.transports.contestant import TRANSPORTS
from benchmarks.transports.jobs import (
    CHECKED_REPEATS,
    OURS,
    Figures,
    Job,
    installed_peers,
    make_job,
    run_job,
)
from benchmarks.transports.outcome import Results, check, show, write_figure_data
from benchmarks.transports.points import KB, MIDDLE, Point, points_of, quick_points_of

NAMES = (OURS, *TRANSPORTS)
PARTS = ("a", "b", "c")
COMPARED_MESSAGES = 300


def arguments() -> argparse.Namespace:
    made = parser(__doc__ or "")
    made.formatter_class = argparse.RawDescriptionHelpFormatter
    made.add_argument(
        "--only", type=_names, default=NAMES, metavar="NAME,NAME", help=f"of {', '.join(NAMES)}"
    )
    made.add_argument(
        "--part", type=lambda text: tuple(text.split(",")), default=PARTS, metavar="a,b,c"
    )
    made.add_argument("--repeats", type=int, default=CHECKED_REPEATS, help="at most so many")
    made.add_argument("--check", action="store_true", help="compare every byte, untimed")
    made.add_argument("--figures", action="store_true", help="write the data of the figures")
    args = made.parse_args()
    if unknown := set(args.part) - set(PARTS):
        made.error(f"no part {', '.join(sorted(unknown))}: there are {', '.join(PARTS)}")
    return args


def _names(text: str) -> tuple[str, ...]:
    chosen = tuple(text.split(","))
    if unknown := set(chosen) - set(NAMES):
        raise argparse.ArgumentTypeError(
            f"no transport {', '.join(sorted(unknown))}: there are {', '.join(NAMES)}"
        )
    return chosen


def contestants(wanted: tuple[str, ...], peers: dict[str, str | None]) -> list[str]:
    """Those of the wanted transports that are there; the others are named."""
    there = [name for name in wanted if name == OURS or peers.get(name)]
    if missing := [name for name in wanted if name not in there]:
        say(f"not installed: {', '.join(missing)} (`make peers` installs them)")
    return there


def points(parts: tuple[str, ...], is_quick: bool) -> list[Point]:
    """The points of these parts, each once."""
    every = [
        point for part in parts for point in (quick_points_of if is_quick else points_of)(part)
    ]
    return list(dict.fromkeys(every))


def measure(report: Report, names: list[str], args: argparse.Namespace) -> Results:
    """All transports take turns at a point, then the next point, then all of it again."""
    results = Results()
    for name in names:
        results.transports.append(name)
    for turn in range(1, args.repeats + 1):
        for point in points(args.part, args.quick):
            jobs = [make_job(name, point, args.quick) for name in names]
            for job, seed in alternate([job for job in jobs if turn <= job.repeats], [turn]):
                figures = run_job(job)
                report.add(job.transport, seed, figures)
                results.add(job.transport, job.point, figures)
                say(f"turn {turn}, {job.point.label}, {job.transport}: {_brief(figures)}")
    return results


def _brief(figures: Figures) -> str:
    if "failed" in figures:
        return "failed"
    return f"{figures['messages_per_s']:,.0f} messages/s, {figures['mb_per_s']:,.0f} MB/s"


def compare_bytes(names: list[str]) -> int:
    """Every byte of every message, for every transport."""
    failed = 0
    for name in names:
        for size, actors in ((4 * KB, 1), (64 * KB, 4), (MIDDLE, 2)):
            for is_copying in (False, True):
                point = Point(size, actors, 0.0, COMPARED_MESSAGES, is_copying, is_check=True)
                figures = run_job(Job(name, point, 1))
                failed += "failed" in figures
                outcome = "FAILED" if "failed" in figures else f"{figures['received']} compared"
                print(f"{name}, {point.label}: {outcome}", flush=True)
    return 1 if failed else 0


def main() -> int:
    args = arguments()
    peers = installed_peers()
    names = contestants(args.only, peers)
    if args.check:
        return compare_bytes(names)
    report = Report("transports", args)
    report.note(peers=peers)
    results = measure(report, names, args)
    show(report, results, args.part, points(args.part, args.quick))
    check(report, results)
    if args.figures:
        command = command_line("benchmarks.transports.bench")
        for path in write_figure_data(results, command, peers):
            say(f"written: {path.name}")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
