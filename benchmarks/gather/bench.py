"""Rounds and gradients per unit of time, by gather rule, law of time and number of actors.

python -m benchmarks.gather.bench            about a minute
python -m benchmarks.gather.bench --quick    a smoke run

Nothing is computed but time: `tianji.virtual.rounds` with the laws of `times`. Beside it, what a
rule costs for each gradient that arrives, which may not depend on the number of actors.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.harness import Report, alternate, median, parser, say
from tianji.algorithms.interface import Gather
from tianji.balance.given_times import Times
from tianji.buffer.gather.rules import build_rule
from tianji.config.run import TimesConfig
from tianji.virtual.rounds import Gathered, simulate_rounds, total

NUM_ACTORS = (5, 10, 100, 1000)
LAWS = ("equal", "sqrt", "straggler", "random", "changing")
NETWORKS = ("none", "sqrt", "sqrt-size")
HUMANOID = 30_498
"""Parameters of the policy for Humanoid."""
FEW, MANY = 10, 10_000
TURNS = 5


@dataclass(frozen=True)
class Method:
    """A gather rule and its M; 0: as many as there are actors."""

    name: str
    rule: Any
    m: int = 1

    def gather(self, num_actors: int) -> Gather:
        m = self.m or num_actors
        return Gather(self.rule, num_gradients=m, first_num_gradients=m)


METHODS = (
    Method("rennala M=20", "first", 20),
    Method("rennala M=50", "first", 50),
    Method("rennala M=n", "first", 0),
    Method("malenia M=20", "harmonic", 20),
    Method("malenia M=50", "harmonic", 50),
    Method("synchronous", "barrier"),
    Method("afedpg (our reconstruction)", "every"),
)
RENNALA_N, SYNCHRONOUS = METHODS[2], METHODS[5]


def simulate(method: Method, law: TimesConfig, num_actors: int, num_rounds: int) -> Gathered:
    """AFedPG's rounds are of one gradient: it gets as many gradients as the synchronous one."""
    times = Times(law, num_actors, HUMANOID, seed=1)
    rounds = num_rounds * num_actors if method.rule == "every" else num_rounds
    return total(
        simulate_rounds(method.gather(num_actors), times, num_actors, 1, rounds), num_actors
    )


def show(found: Gathered) -> str:
    begun = found.gradients + found.discarded
    share = f", {found.discarded / begun:.0%} lost" if found.discarded else ""
    return f"{found.rounds_per_s:.3g} ({found.gradients_per_s:.3g}{share})"


def run(report: Report, num_actors: int, num_rounds: int) -> None:
    rows = []
    for law in LAWS:
        for network in NETWORKS:
            times = TimesConfig(law=law, network=network)
            found = [simulate(method, times, num_actors, num_rounds) for method in METHODS]
            rows.append([law, network, *map(show, found)])
            for method, figures in zip(METHODS, found, strict=True):
                kept = {key: value for key, value in asdict(figures).items() if key != "counts"}
                point = {"law": law, "network": network, "num_actors": num_actors}
                report.add(method.name, 1, {**point, **kept})
    headers = ["gradient", "message", *(method.name for method in METHODS)]
    title = f"{num_actors} actors: rounds per unit of time (gradients per unit of time)"
    report.table(title, headers, rows)


def arrival_ns(method: Method, num_actors: int, num_arrivals: int) -> float:
    """One gradient's cost, round begins included, with actors in turn."""
    rule = build_rule(method.gather(num_actors), num_actors)
    started = time.perf_counter_ns()
    for number in range(num_arrivals):
        if rule.arrived(number % num_actors):
            rule.begin(is_first=False)
    return (time.perf_counter_ns() - started) / num_arrivals


def costs(report: Report, num_arrivals: int) -> None:
    """M = n, so that a round of few and one of many actors begin equally often per gradient."""
    methods = (Method("first", "first", 0), Method("harmonic", "harmonic", 0), *METHODS[-2:])
    points = [(method, n) for method in methods for n in (FEW, MANY)]
    found: dict[tuple[str, int], list[float | None]] = {}
    for (method, n), turn in alternate(points, range(TURNS)):
        cost_ns = arrival_ns(method, n, num_arrivals)
        found.setdefault((method.name, n), []).append(cost_ns)
        report.add(f"cost of {method.name}", turn, {"num_actors": n, "arrival_ns": cost_ns})
    rows = []
    for method in methods:
        few, many = (median(found[method.name, n]) or 0.0 for n in (FEW, MANY))
        rows.append([method.name, f"{few:.0f}", f"{many:.0f}"])
        report.check(f"{method.name}: arrival among {MANY} / among {FEW}", many / few, "<=", 2.0)
    report.table("one arrival, ns", ["rule", f"{FEW} actors", f"{MANY} actors"], rows)


def main() -> int:
    args = parser(__doc__ or "").parse_args()
    report = Report("gather", args)
    for num_actors in NUM_ACTORS[:2] if args.quick else NUM_ACTORS:
        run(report, num_actors, 5 if args.quick else 100 if num_actors < 1000 else 30)
        say(f"{num_actors} actors")
    straggler = TimesConfig(law="straggler")
    rennala, barrier = (
        simulate(method, straggler, 5, 10 if args.quick else 100)
        for method in (RENNALA_N, SYNCHRONOUS)
    )
    report.check(
        "one straggler of 30 among 5: Rennala's rounds per time over the synchronous method's",
        rennala.rounds_per_s / barrier.rounds_per_s,
        ">=",
        3.0,
    )
    costs(report, 20_000 if args.quick else 200_000)
    return report.finish()


if __name__ == "__main__":
    raise SystemExit(main())
