"""How much of the possible rate does an environment with rare long steps reach by default?

python -m benchmarks.uneven_steps.bench            two minutes
python -m benchmarks.uneven_steps.bench --quick
"""

from __future__ import annotations

import sys

from benchmarks.harness import ROOT, Report, alternate, median, parser, ratio, say, spread, train
from benchmarks.uneven_steps.napping import NAP_S, STEPS_PER_NAP

NUM_ENVS = 8
POSSIBLE = NUM_ENVS * STEPS_PER_NAP / NAP_S
"""Steps per second when no environment ever waits for another."""
SETTINGS = {"defaults": (), "one actor": ("--num-actors", "1")}


def rate(settings: tuple[str, ...], seed: int, max_wall_s: float) -> dict[str, float]:
    summary = train(
        *("--env", "benchmarks.uneven_steps.napping:Napping", "--seed", str(seed)),
        *("--max-wall-s", f"{max_wall_s:g}", "--plan.source", "rule", *settings),
        timeout_s=max_wall_s + 120.0,
        env={"PYTHONPATH": str(ROOT)},
    )
    return {
        "steps_per_s": summary["rates_per_s"]["received"],
        "num_actors": summary["plan"]["num_actors"],
        "lag": summary["lag_versions"]["mean"],
    }


def main() -> int:
    made = parser(__doc__ or "")
    made.add_argument("--seeds", type=int, default=3)
    made.add_argument("--max-wall-s", type=float, default=15.0)
    args = made.parse_args()
    if args.quick:
        args.seeds, args.max_wall_s = 1, 2.0
    report = Report("uneven_steps", args)
    rates: dict[str, list[float | None]] = {name: [] for name in SETTINGS}
    rows: dict[str, str] = {}
    for name, seed in alternate(tuple(SETTINGS), range(1, args.seeds + 1)):
        figures = rate(SETTINGS[name], seed, args.max_wall_s)
        report.add(name, seed, figures)
        rates[name].append(figures["steps_per_s"])
        rows[name] = f"{figures['num_actors']:g}"
        say(f"{name}, seed {seed}: {figures['steps_per_s']:.0f} steps/s")
    report.table(
        f"{NUM_ENVS} environments, one step in {STEPS_PER_NAP} takes {NAP_S:g} s",
        ["settings", "actors", "steps/s", f"of {POSSIBLE:,.0f} possible"],
        [
            [name, rows[name], spread(found, 0), f"{ratio(median(found), POSSIBLE) or 0:.2f}"]
            for name, found in rates.items()
        ],
    )
    report.check(
        "defaults, of what is possible", ratio(median(rates["defaults"]), POSSIBLE), ">=", 0.8
    )
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
