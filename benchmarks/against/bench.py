"""Is this tree as fast as another commit?

python -m benchmarks.against.bench COMMIT            15 pairs of every figure, about 25 minutes
python -m benchmarks.against.bench COMMIT --only comm start-up
python -m benchmarks.against.bench COMMIT --quick    one pair of short runs
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from benchmarks.against.figures import FIGURES, Figure, Reading
from benchmarks.against.pairs import BOUND, better_ratio, judge
from benchmarks.against.sides import Side, both_sides, resolve_commit
from benchmarks.harness import OTHERS, ContestantFailed, Report, alternate, parser, say, spread

Pair = tuple[float, float]


def chosen(only: Sequence[str] | None) -> list[Figure]:
    """Return the figures whose names begin with one of these words."""
    return [figure for figure in FIGURES if only is None or figure.name.startswith(tuple(only))]


def measure_pair(
    report: Report, figure: Figure, sides: tuple[Side, Side], seed: int, quick: bool
) -> Pair | None:
    """Measure one figure on both sides, one right after the other; the order changes by seed."""
    found: dict[str, float] = {}
    for side, _ in alternate(sides, [seed]):
        contestant = f"{figure.name}, {side.name}"
        try:
            reading = figure.measure(side, seed, quick)
        except ContestantFailed as error:
            say(f"{contestant}, seed {seed}: {error}")
            report.add(contestant, seed, {"failed": str(error)})
            return None
        if not reading.is_reached:
            say(f"{contestant}, seed {seed}: not reached; the limit of the run counts")
        report.add(contestant, seed, to_raw(figure, reading))
        found[side.name] = reading.value
    ours, theirs = (found[side.name] for side in sides)
    say(f"{figure.name}, seed {seed}: {ours:.4g} against {theirs:.4g} {figure.unit}")
    return ours, theirs


def to_raw(figure: Figure, reading: Reading) -> dict[str, float]:
    raw = {figure.unit: reading.value, "is_reached": reading.is_reached}
    return raw if reading.others_cores is None else {**raw, OTHERS: reading.others_cores}


def show(report: Report, pairs: dict[Figure, list[Pair]], num_pairs: int, commit: str) -> None:
    verdicts = {
        figure: judge([better_ratio(*pair, figure.higher_is_better) for pair in found])
        for figure, found in pairs.items()
        if found
    }
    rows = []
    for figure, verdict in verdicts.items():
        ours, theirs = ([pair[side] for pair in pairs[figure]] for side in (0, 1))
        digits = 0 if figure.unit == "messages/s" else 2
        values = [spread(side, digits) for side in (ours, theirs)]
        state = f"below {BOUND}" if verdict.is_worse else ""
        rows.append(
            [figure.name, figure.unit, *values, str(verdict.num_pairs), verdict.text(), state]
        )
    headers = ["figure", "unit", "this tree", commit, "pairs", "ratio (90 % interval)", ""]
    report.table("This tree over the other commit; above 1 is better", headers, rows)
    for figure, found in pairs.items():
        if len(found) < num_pairs:  # a tree that fails must not pass by its few good pairs
            report.check(f"{figure.name}, measured pairs", len(found), ">=", num_pairs)
        high = verdicts[figure].high if figure in verdicts else None
        report.check(f"{figure.name}, upper end of the interval", high, ">=", BOUND)
    report.note(ratios={figure.name: vars(verdict) for figure, verdict in verdicts.items()})


def arguments(argv: list[str] | None) -> argparse.Namespace:
    made = parser(__doc__ or "")
    made.add_argument("commit", help="the other commit: a hash, a tag or a branch")
    made.add_argument("--pairs", type=int, default=15)
    made.add_argument("--only", nargs="+", metavar="WORD", help="figures that begin with a word")
    args = made.parse_args(argv)
    if not chosen(args.only):
        made.error(f"no figure begins with {args.only}; there are {[f.name for f in FIGURES]}")
    return args


def main(argv: list[str] | None = None) -> int:
    args = arguments(argv)
    try:
        commit = resolve_commit(args.commit)
    except ValueError as error:
        say(str(error))
        return 2
    num_pairs = 1 if args.quick else args.pairs
    report = Report("against", args)
    report.note(other_commit=commit)
    pairs: dict[Figure, list[Pair]] = {figure: [] for figure in chosen(args.only)}
    with both_sides(commit) as sides:
        for side in sides:  # byte code and caches are made before the first pair
            FIGURES[0].measure(side, 0, True)
        for seed in range(1, num_pairs + 1):
            for figure, found in pairs.items():
                pair = measure_pair(report, figure, sides, seed, args.quick)
                if pair is not None:
                    found.append(pair)
    show(report, pairs, num_pairs, commit)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
