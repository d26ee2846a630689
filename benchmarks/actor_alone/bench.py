"""What the actor adds to stepping and inference: environment steps per second of our actor, of the
loop a person writes, and of bare stepping plus bare forward passes. One core, one thread.

    python -m benchmarks.actor_alone.bench            20 rounds, about a minute
    python -m benchmarks.actor_alone.bench --quick
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

import torch

from benchmarks.actor_alone.plain_loop import PlainLoop
from benchmarks.harness import Report, alternate, median, parser, spread
from benchmarks.limits import BareActor, numpy_forward, torch_forward
from benchmarks.rooms import ActorRoom, make_spec

BOUNDS = {8: 0.60, 64: 0.70}
HIDDEN = (64, 64)
UNROLL_LENGTH = 32
BARE_TORCH, BARE_NUMPY = "bare, torch forward", "bare, numpy forward"

Run = Callable[[int], int]


def contestants(num_envs: int) -> dict[str, Run]:
    """Each takes a number of unrolls and returns the environment steps it made."""
    spec = make_spec(
        "cartpole-ppo",
        num_envs=num_envs,
        model={"hidden": list(HIDDEN)},
        algorithm={"unroll_length": UNROLL_LENGTH},
    )
    bare_torch = BareActor(num_envs, torch_forward(HIDDEN))
    bare_numpy = BareActor(num_envs, numpy_forward(HIDDEN))
    return {
        "ours": ActorRoom(spec).run,
        "plain loop": PlainLoop(num_envs, UNROLL_LENGTH, HIDDEN).run,
        BARE_TORCH: lambda unrolls: bare_torch.run(unrolls * UNROLL_LENGTH),
        BARE_NUMPY: lambda unrolls: bare_numpy.run(unrolls * UNROLL_LENGTH),
    }


def unrolls_that_take(run: Run, seconds: float) -> int:
    started = time.perf_counter()
    run(8)
    return max(1, round(8 * seconds / (time.perf_counter() - started)))


def by_round(mine: list[float], other: list[float]) -> list[float | None]:
    return [a / b for a, b in zip(mine, other, strict=True)]


def bench(report: Report, num_envs: int, rounds: int, chunk_s: float) -> None:
    """Turns of a fraction of a second; every round gives one ratio, so that a machine that slows
    down in between slows both sides of it."""
    runs = contestants(num_envs)
    for run in runs.values():
        run(20)
    unrolls = {name: unrolls_that_take(run, chunk_s) for name, run in runs.items()}
    rates: dict[str, list[float]] = {name: [] for name in runs}
    for name, turn in alternate(list(runs), range(rounds)):
        started = time.perf_counter()
        steps = runs[name](unrolls[name])
        rate = steps / (time.perf_counter() - started)
        rates[name].append(rate)
        report.add(name, turn, {"num_envs": num_envs, "steps_per_s": rate})
    shares = {name: by_round(rates[name], rates[BARE_TORCH]) for name in runs}
    floors = {name: by_round(rates[name], rates[BARE_NUMPY]) for name in runs}
    rows = [
        [name, spread(rates[name], 0), spread(shares[name]), spread(floors[name])] for name in runs
    ]
    title = f"{num_envs} environments, 64-64 tanh policy, unrolls of {UNROLL_LENGTH}"
    headers = ["contestant", "env steps/s", "share of bare torch", "share of bare numpy"]
    report.table(title, headers, rows)
    what = f"actor at {num_envs} environments, share of stepping plus bare torch passes"
    report.check(what, median(shares["ours"]), ">=", BOUNDS[num_envs])


def main() -> int:
    made = parser(__doc__ or "")
    made.add_argument("--rounds", type=int, default=20)
    args = made.parse_args()
    report = Report("actor_alone", args)
    torch.set_num_threads(1)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    for num_envs in BOUNDS:
        bench(report, num_envs, *((3, 0.1) if args.quick else (args.rounds, 0.4)))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
