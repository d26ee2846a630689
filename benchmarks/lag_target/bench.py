"""What does lag cost? One task from images, with the set-point of the lag at 0, 1, 2 and 4.

    python -m benchmarks.lag_target.bench            about 2 minutes on 2 cores
    python -m benchmarks.lag_target.bench --quick

`python docs/pictures/lag_target.py` draws the newest results.
"""

from __future__ import annotations

import sys
from typing import Any

from benchmarks.harness import Report, alternate, median, parser, ratio, say, spread, train

SET_POINTS = (0, 1, 2, 4)
MOST_AWAY = 0.05
"""Versions by which the lag of the steady state may differ from its set-point."""


def measure(preset: str, set_point: int, seed: int) -> dict[str, Any]:
    """Train to the target of the preset; `steps_to_target` is None where it was not reached."""
    summary = train(
        preset,
        *("--lag-target", str(set_point), "--max-lag", str(max(1, set_point))),
        *("--seed", str(seed), "--observe.period-s", "0.05"),
        timeout_s=1200,
    )
    steps = [
        line["env_steps"] for line in summary["metrics"] if line["time_to_target_s"] is not None
    ]
    reached = summary["time_to_target_s"] is not None
    return {
        **summary,
        "steps_to_target": min([*steps, summary["env_steps"]]) if reached else None,
        "steady_lag": steady_lag(summary["lag_histogram"], set_point),
        "histogram": summary["lag_histogram"],
    }


def steady_lag(histogram: list[int], set_point: int) -> float:
    """Mean lag without the start, in which version v cannot have a lag of more than v.

    histogram: unrolls by lag. The start leaves out as many unrolls of each lag below the set-point
    as one version takes, which is what the first version has.
    """
    per_version = histogram[0] if set_point else 0
    counts = [
        max(0, count - per_version) if lag < set_point else count
        for lag, count in enumerate(histogram)
    ]
    return sum(lag * count for lag, count in enumerate(counts)) / sum(counts)


def main() -> int:
    made = parser(__doc__ or "")
    made.add_argument("--preset", default="catch-pixels-ppo")
    made.add_argument("--seeds", type=int, default=3)
    args = made.parse_args()
    if args.quick:
        args.seeds = 1
    report = Report("lag_target", args)
    found: dict[int, list[dict[str, Any]]] = {set_point: [] for set_point in SET_POINTS}
    for set_point, seed in alternate(SET_POINTS, range(1, args.seeds + 1)):
        figures = measure(args.preset, set_point, seed)
        found[set_point].append(figures)
        report.add(str(set_point), seed, figures)
        say(
            f"set-point {set_point}, seed {seed}: {figures['steps_to_target']} steps, lag "
            f"{figures['lag_versions']['mean']:.2f}, {figures['time_to_target_s']} s"
        )
    show(report, args.preset, found)
    return report.finish()


def show(report: Report, preset: str, found: dict[int, list[dict[str, Any]]]) -> None:
    serial = median([run["steps_to_target"] for run in found[0]])
    rows = []
    for set_point, runs in found.items():
        steps = [run["steps_to_target"] for run in runs]
        share = ratio(median(steps), serial)
        rows.append(
            [
                str(set_point),
                spread([run["steady_lag"] for run in runs]),
                spread([run["lag_versions"]["mean"] for run in runs]),
                str(max(run["lag_versions"]["max"] for run in runs)),
                spread(steps, 0),
                "never" if share is None else f"{share:.2f}",
                spread([run["time_to_target_s"] for run in runs], 1),
                str(sum(run["discarded_items"] for run in runs)),
            ]
        )
    headers = ["set-point", "lag in the steady state", "lag of the whole run", "highest lag",
               "steps to target", "over serial", "seconds to target", "discarded"]  # fmt: skip
    report.table(f"{preset}: median (lowest-highest) of seeds", headers, rows)
    away = max(
        abs(run["steady_lag"] - set_point) for set_point, runs in found.items() for run in runs
    )
    report.check("steady lag away from its set-point, versions", away, "<=", MOST_AWAY)


if __name__ == "__main__":
    sys.exit(main())
