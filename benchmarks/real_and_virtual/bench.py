"""Do real processes that wait as long make as many versions as the virtual clock says?

    python -m benchmarks.real_and_virtual.bench                      about 6 minutes
    python -m benchmarks.real_and_virtual.bench --only rennala-nigt
    python -m benchmarks.real_and_virtual.bench --quick

Every gather rule under every law: once with the local engine, four actors that mostly sleep, and
once with the virtual one. Both are `tianji train` with the same settings but for the engine.
"""

from __future__ import annotations

import itertools
import sys
from typing import Any, NamedTuple

from benchmarks.harness import Report, alternate, median, parser, ratio, say, train

ALGORITHMS = ("rennala-nigt", "malenia-nigt", "sync-nigt", "afedpg")
LAWS = ("equal", "sqrt", "straggler")
NETWORKS = ("none", "sqrt")
NUM_ACTORS = 4
SLOWEST = 5
UNIT_S = 0.05
SETTLE_S = 2.0
"""Until all actors are there, and have found their rhythm."""
BOUND = 0.10
RATES = ("rounds_per_s", "gradients_per_s", "discarded_per_s")
HEADERS = [
    f"{name}, {side}"
    for name in ("rounds/s", "gradients/s", "dropped/s")
    for side in ("real", "virtual")
]


class Case(NamedTuple):
    """One method under one law."""

    algorithm: str
    law: str
    network: str

    @property
    def name(self) -> str:
        return f"{self.algorithm}, {self.law}, messages {self.network}"

    def settings(self, seconds: float) -> list[str]:
        gradients = [] if self.algorithm in ("sync-nigt", "afedpg") else ["--m", "8"]
        return [
            "--num-actors", str(NUM_ACTORS), "--num-envs", str(NUM_ACTORS), *gradients,
            "--baseline", "none", "--unroll-length", "8", "--target-return", "none",
            "--max-env-steps", str(10**9), "--max-wall-s", f"{SETTLE_S + seconds:g}",
            "--times.law", self.law, "--times.network", self.network,
            "--times.slowest", str(SLOWEST), "--times.unit-s", str(UNIT_S),
            "--observe.period-s", "0.05", "--no-tensorboard", "--checkpoint.period-s", "1000",
        ]  # fmt: skip


def rates(summary: dict[str, Any]) -> dict[str, float]:
    """Of the part of the run in which everybody was there, which begins and ends with a version."""
    first = next(record for record in summary["metrics"] if record["wall_s"] >= SETTLE_S)
    last = summary["metrics"][-2]  # behind it comes the record of the end
    seconds = last["wall_s"] - first["wall_s"]
    dropped = last["discarded_items"] - first["discarded_items"]
    gradients = sum(last["gather"]["counts"]) - sum(first["gather"]["counts"])
    return {
        "rounds_per_s": (last["version"] - first["version"]) / seconds,
        "gradients_per_s": gradients / seconds,
        "discarded_per_s": dropped / seconds,
    }


def main() -> int:
    options = parser(__doc__ or "")
    options.add_argument("--only", choices=ALGORITHMS, help="this algorithm alone")
    options.add_argument("--seconds", type=float, default=5.0, help="of every run")
    options.add_argument("--repeats", type=int, default=1, help="real runs of every case")
    args = options.parse_args()
    report = Report("real_and_virtual", args)
    algorithms = (args.only,) if args.only else ALGORITHMS
    laws, networks = (LAWS[1:2], NETWORKS[:1]) if args.quick else (LAWS, NETWORKS)
    seconds = 1.0 if args.quick else args.seconds
    cases = [Case(*case) for case in itertools.product(algorithms, laws, networks)]
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    for (case, engine), turn in alternate(
        list(itertools.product(cases, ("local", "virtual"))), range(args.repeats)
    ):
        say(f"{case.name}, {engine}, run {turn + 1}")
        summary = train(case.algorithm, "--engine", engine, *case.settings(seconds))
        found.setdefault((case.name, engine), []).append(rates(summary))
        report.add(f"{case.name}, {engine}", turn, {**summary, **rates(summary)})
    rows = []
    for case in cases:
        real, virtual = (
            {key: median([one[key] for one in found[case.name, engine]]) for key in RATES}
            for engine in ("local", "virtual")
        )
        of_both = ratio(real["rounds_per_s"], virtual["rounds_per_s"]) or 0.0
        rows.append([
            case.algorithm, case.law, case.network, f"{of_both:.3f}",
            *(f"{side[key]:.2f}" for key in RATES for side in (real, virtual)),
        ])  # fmt: skip
        report.check(f"{case.name}: real / virtual - 1", abs(of_both - 1), "<=", BOUND)
    headers = ["algorithm", "law", "messages", "real / virtual", *HEADERS]
    report.table("Real processes and the virtual clock", headers, rows)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
