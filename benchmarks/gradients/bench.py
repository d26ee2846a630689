"""Gradients of one actor: environment steps per second that it turns into policy gradients, against
a bare torch loop for the same estimator. One environment, one core, one thread, same run.

    python -m benchmarks.gradients.bench            20 rounds, about a minute
    python -m benchmarks.gradients.bench --quick

The bare loop does nothing else: no slots, no stamps, no policy to read, no sum to hand over. It
comes in two forms, and the faster one of each round is what the actor is held against.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

import torch

from benchmarks.gradients.bare_loop import BareLoop
from benchmarks.harness import Report, alternate, median, parser, spread
from benchmarks.rooms import GradientRoom, make_spec

BOUND = 0.8
PRESETS = {"CartPole-v1": "rennala-nigt", "Hopper-v5": "hopper-rennala-nigt"}
HORIZON, GAMMA = 500, 0.99
OURS, GRAPH, AGAIN = "actor", "bare, graph kept", "bare, episode again"

Run = Callable[[int], int]


def contestants(env: str) -> dict[str, Run]:
    """Each takes a number of gradients and returns the environment steps in them."""
    spec = make_spec(
        PRESETS[env],
        num_envs=1,
        algorithm={
            "unroll_length": HORIZON, "gamma": GAMMA, "estimate": "episodes", "baseline": "none",
        },
    )  # fmt: skip
    return {
        OURS: GradientRoom(spec).run,
        GRAPH: BareLoop(env, HORIZON, GAMMA, keeps_graph=True).run,
        AGAIN: BareLoop(env, HORIZON, GAMMA, keeps_graph=False).run,
    }


def gradients_that_take(run: Run, seconds: float) -> int:
    started = time.perf_counter()
    run(20)
    return max(1, round(20 * seconds / (time.perf_counter() - started)))


def bench(report: Report, env: str, rounds: int, chunk_s: float) -> None:
    """Turns of a fraction of a second; every round gives one ratio."""
    runs = contestants(env)
    gradients = {name: gradients_that_take(run, chunk_s) for name, run in runs.items()}
    rates: dict[str, list[float]] = {name: [] for name in runs}
    for name, turn in alternate(list(runs), range(rounds)):
        started = time.perf_counter()
        steps = runs[name](gradients[name])
        rate = steps / (time.perf_counter() - started)
        rates[name].append(rate)
        report.add(name, turn, {"env": env, "steps_per_s": rate})
    bare = [max(pair) for pair in zip(rates[GRAPH], rates[AGAIN], strict=True)]
    shares = {
        name: [mine / best for mine, best in zip(rates[name], bare, strict=True)] for name in runs
    }
    rows = [[name, spread(rates[name], 0), spread(shares[name])] for name in runs]
    headers = ["contestant", "env steps/s", "share of the better bare loop"]
    report.table(f"{env}, one environment, 64-64 tanh policy", headers, rows)
    report.check(f"actor on {env}, share of the bare loop", median(shares[OURS]), ">=", BOUND)


def main() -> int:
    made = parser(__doc__ or "")
    made.add_argument("--rounds", type=int, default=20)
    args = made.parse_args()
    report = Report("gradients", args)
    torch.set_num_threads(1)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    for env in PRESETS:
        bench(report, env, *((3, 0.1) if args.quick else (args.rounds, 0.4)))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
