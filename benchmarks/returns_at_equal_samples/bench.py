"""Does running asynchronously cost learning? Returns of the local and the inline engine after the
same number of environment steps, same settings, ten seeds each.

    python -m benchmarks.returns_at_equal_samples.bench            about 5 minutes
    python -m benchmarks.returns_at_equal_samples.bench --quick
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from benchmarks.harness import Report, alternate, parser, say, spread, train
from benchmarks.returns_at_equal_samples.rank_test import probability_this_low, share_above

ENGINES = ("local", "inline")
NEVER = "100000"  # no return is this high: the run goes on to its last step
SIGNIFICANCE = 0.05


def curve(preset: str, engine: str, seed: int, max_env_steps: int) -> list[tuple[int, float]]:
    """(environment steps, mean return of the last 100 episodes), every 50 ms of the run.

    The run keeps the schedules of its preset, so the limit must be the preset's own or be said.
    """
    summary = train(
        preset,
        *("--engine", engine, "--seed", str(seed), "--target-return", NEVER),
        *("--max-env-steps", str(max_env_steps), "--observe.period-s", "0.05"),
        timeout_s=600,
    )
    return [
        (line["env_steps"], line["mean_return_100"])
        for line in summary["metrics"]
        if line.get("mean_return_100") is not None
    ]


def at(points: list[tuple[int, float]], steps: list[int]) -> list[float]:
    """The curve read at the given numbers of steps."""
    known_steps, returns = zip(*points, strict=True)
    return [float(value) for value in np.interp(steps, known_steps, returns)]


def measure(report: Report, args: Any, steps: list[int]) -> dict[str, np.ndarray[Any, Any]]:
    """Returns by engine: one row for each seed, one column for each number of steps."""
    rows: dict[str, list[list[float]]] = {engine: [] for engine in ENGINES}
    seeds = range(args.first_seed, args.first_seed + (2 if args.quick else args.seeds))
    for engine, seed in alternate(ENGINES, seeds):
        returns = at(curve(args.preset, engine, seed, args.max_env_steps), steps)
        rows[engine].append(returns)
        report.add(engine, seed, {"env_steps": steps, "mean_return_100": returns})
        say(f"{engine}, seed {seed}: " + " ".join(f"{value:.0f}" for value in returns))
    return {engine: np.array(values) for engine, values in rows.items()}


def main() -> int:
    made = parser(__doc__ or "")
    made.add_argument("--preset", default="cartpole-ppo")
    made.add_argument("--seeds", type=int, default=10)
    made.add_argument("--first-seed", type=int, default=1)
    made.add_argument("--max-env-steps", type=int, default=100_000)
    made.add_argument("--points", type=int, default=8, help="how often each curve is read")
    args = made.parse_args()
    if args.quick:
        args.max_env_steps = 20_000
    report = Report("returns_at_equal_samples", args)
    steps = [round(args.max_env_steps * (i + 1) / args.points) for i in range(args.points)]
    returns = measure(report, args, steps)
    rows = [
        [
            f"{steps[column]:,}",
            *(spread(list(returns[engine][:, column]), 0) for engine in ENGINES),
            f"{probability_this_low(*(returns[engine][:, column] for engine in ENGINES)):.2f}",
        ]
        for column in range(len(steps))
    ]
    whole = [returns[engine].mean(1) for engine in ENGINES]
    p_worse = probability_this_low(*whole)
    rows.append(["mean of these", *(spread(list(means), 0) for means in whole), f"{p_worse:.2f}"])
    title = f"{args.preset}: mean return of the last 100 episodes, median (lowest-highest) of seeds"
    report.table(title, ["env steps", *ENGINES, "p (local is worse)"], rows)
    above = share_above(*whole)
    report.note(test="Mann-Whitney U, exact, one-sided", share_local_above_inline=above)
    print(f"\nA local run is above an inline run in {above:.0%} of the pairs.")
    what = "exact one-sided Mann-Whitney on the mean over the curve: p that local is no worse"
    report.check(what, p_worse, ">=", SIGNIFICANCE)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
