"""How good is the plan: against the best point of an exhaustive grid, and against its own promise.

    python -m benchmarks.plan_grid.bench                       all combinations, about 20 minutes
    python -m benchmarks.plan_grid.bench --only cartpole-dqn   some of them
    python -m benchmarks.plan_grid.bench --quick

For every combination: all points of the grid once, then `tianji plan` from nothing, then the
grid's best three and the plan again, in alternation.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.harness import ROOT, Report, alternate, median, parser, run_json, say
from benchmarks.plan_grid.combinations import COMBINATIONS, Combination, Mapped, num_cores
from tianji.config.run import RunConfig
from tianji.costs.profile import Rehearsal
from tianji.errors import WorkerLost
from tianji.figures.balance.scaling import measure_rates

BEST = 3
SMALL_MACHINE_CORES = 4
SHARE_BOUND, LARGE_SHARE_BOUND = 0.90, 0.85
PREDICTION_BOUND = 0.15
LAG_BOUND = 0.25
RATIO_BOUND = 0.02
PLANNING_BOUND_S = 60.0
RATES = ("produced", "received", "trained")

Measure = Callable[[RunConfig, float], Rehearsal]
Planned = dict[str, Any]


@dataclass(frozen=True)
class Finding:
    """Everything that was found about one combination."""

    name: str
    plan: Mapped
    planned: Planned
    best: Mapped
    share: float
    """The plan's median over that of the best point."""
    measured: dict[str, float]
    """Medians of the plan's own runs."""
    ratio: float
    """The ratio's set-point, in items."""

    def errors(self) -> dict[str, float]:
        """How far each predicted rate is from the measured one, as a share of the latter."""
        predicted = self.planned["predicted"]
        return {rate: predicted[rate] / self.measured[rate] - 1 for rate in RATES}

    def lag_error(self) -> float:
        lag = self.planned["lag_versions"]
        return abs(self.measured["lag_versions"] - lag) / lag if lag else 0.0

    def ratio_error(self) -> float:
        return abs(self.measured["ratio"] / self.ratio - 1)


class Bench:
    """Measures one combination after the other and keeps every figure."""

    def __init__(
        self,
        report: Report,
        seconds: float,
        repeats: int,
        measure: Measure = measure_rates,
        plan: Callable[[Combination], Planned] | None = None,
    ) -> None:
        self._report = report
        self._seconds = seconds
        self._repeats = repeats
        self._measure = measure
        self._plan = plan or plan_from_nothing

    def run(self, combination: Combination, points: Sequence[Mapped]) -> Finding:
        started = time.monotonic()
        grid = {point: self._once(combination, point, "grid", 0).trained for point in points}
        planned = self._plan(combination)
        chosen = Mapped(*(planned[name] for name in Mapped._fields))
        self._report.add(f"{combination.name}, planning", 0, {"phase": "plan", **planned})
        say(f"{combination.name}: plan {chosen}, in {planned['planning_s']:.1f} s")
        best_first = sorted(grid, key=lambda point: -grid[point])
        again = self._again(combination, dict.fromkeys([*best_first[:BEST], chosen]))
        trained = {point: _medians(runs)["trained"] for point, runs in again.items()}
        best = max(trained, key=lambda point: trained[point])
        say(f"{combination.name}: {time.monotonic() - started:.0f} s")
        share = trained[chosen] / trained[best]
        return Finding(
            combination.name, chosen, planned, best, share, _medians(again[chosen]),
            combination.ratio(),
        )  # fmt: skip

    def _again(
        self, combination: Combination, points: Iterable[Mapped]
    ) -> dict[Mapped, list[Rehearsal]]:
        found: dict[Mapped, list[Rehearsal]] = {point: [] for point in points}
        for point, turn in alternate(list(found), range(1, self._repeats + 1)):
            found[point].append(self._once(combination, point, "again", turn))
        return found

    def _once(self, combination: Combination, point: Mapped, phase: str, turn: int) -> Rehearsal:
        figures: dict[str, Any] = {"combination": combination.name, "phase": phase}
        try:
            rates = self._measure(combination.config(point), self._seconds)
        except WorkerLost as error:  # threads that only wait for each other, say
            rates = _standstill(point)
            figures["failed"] = str(error)
        figures |= rates.model_dump()
        self._report.add(f"{combination.name}, {point}", turn, figures)
        say(f"{combination.name}, {phase} {turn}, {point}: {rates.trained:,.0f} trained/s")
        return rates


def _standstill(point: Mapped) -> Rehearsal:
    """A point that made too few versions to tell its speed."""
    return Rehearsal(**point._asdict(), produced=0.0, received=0.0, trained=0.0, lag_versions=0.0,
                     ratio=0.0)  # fmt: skip


def _medians(runs: Sequence[Rehearsal]) -> dict[str, float]:
    names = (*RATES, "lag_versions", "ratio")
    return {name: statistics.median(getattr(run, name) for run in runs) for name in names}


def plan_from_nothing(combination: Combination) -> Planned:
    """`tianji plan` with a cache of its own, so that nothing was measured before."""
    command = [sys.executable, "-m", "tianji", "plan", combination.preset]
    with tempfile.TemporaryDirectory(prefix="bench-") as cache:
        known = os.environ.get("PYTHONPATH")
        paths = os.pathsep.join([str(ROOT), *([known] if known else [])])
        env = {"XDG_CACHE_HOME": cache, "PYTHONPATH": paths}
        return run_json(
            [*command, *combination.options(), "--fresh", "--json"], timeout_s=180.0, env=env
        )


def rows_of(findings: Sequence[Finding]) -> list[list[str]]:
    made = []
    for found in findings:
        errors = [f"{error:+.1%}" for error in found.errors().values()]
        lags = f"{found.planned['lag_versions']:.2f} / {found.measured['lag_versions']:.2f}"
        share = f"{found.share:.3f}"
        trained = f"{found.measured['trained']:,.0f}"
        planning = f"{found.planned['planning_s']:.1f}"
        mapped = [str(found.plan), str(found.best)]
        made.append([found.name, *mapped, share, trained, *errors, lags, planning])
    return made


HEADERS = ["combination", "plan", "best", "plan / best", "trained/s", "produced", "received"]
HEADERS += ["trained", "lag planned / met", "planning s"]


def check(report: Report, found: Finding, cores: int) -> None:
    bound = SHARE_BOUND if cores <= SMALL_MACHINE_CORES else LARGE_SHARE_BOUND
    worst = max(abs(error) for error in found.errors().values())
    report.check(f"{found.name}: plan / best", found.share, ">=", bound)
    report.check(f"{found.name}: error of the predicted rates", worst, "<=", PREDICTION_BOUND)
    report.check(f"{found.name}: lag against its prediction", found.lag_error(), "<=", LAG_BOUND)
    report.check(f"{found.name}: ratio off its set-point", found.ratio_error(), "<=", RATIO_BOUND)
    planning_s = found.planned["planning_s"]
    report.check(f"{found.name}: planning, seconds", planning_s, "<=", PLANNING_BOUND_S)


def parse(words: Sequence[str]) -> argparse.Namespace:
    made = parser(__doc__ or "")
    names = [combination.name for combination in COMBINATIONS]
    made.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME",
                      help=f"some of: {', '.join(names)}")  # fmt: skip
    made.add_argument("--seconds", type=float, default=2.5, help="of every measurement")
    made.add_argument("--repeats", type=int, default=5, help="of the best three and the plan")
    args = made.parse_args(words)
    if args.quick:
        args.seconds, args.repeats, args.only = 0.3, 1, args.only[:1]
    return args


def main() -> int:
    args = parse(sys.argv[1:])
    report = Report("plan_grid", args)
    cores = num_cores()
    bench = Bench(report, args.seconds, args.repeats)
    findings = []
    for combination in COMBINATIONS:
        if combination.name in args.only:
            points = combination.grid(cores)
            findings.append(bench.run(combination, points[:2] if args.quick else points))
    title = "Plan and best point (actors x learner threads); predictions against measurement"
    report.table(title, HEADERS, rows_of(findings))
    for found in findings:
        check(report, found, cores)
    report.note(median_share=median([found.share for found in findings]))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
