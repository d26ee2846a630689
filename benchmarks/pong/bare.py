"""Measure bare ALE: Pong stepped with random actions, no network, no learner.

    python -m benchmarks.pong.bare                      the usual layouts of this machine, 5 s each
    python -m benchmarks.pong.bare --seconds 10 --rounds 3 --layouts 1x1x256x16 15x1x32x1
    python -m benchmarks.pong.bare --quick

Frames are 84 x 84 grey, frame skip 4, stack 1, rewards not clipped. A layout is
PROCESSESxGROUPSxENVSxTHREADS: every process holds GROUPS vector environments of ENVS games on
THREADS emulator threads and steps them in turn, so that one group plays while another one is
handled. The best layout is the ceiling for any training on this machine; other yardsticks call
`best_layout` before and after their runs.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier

import numpy as np

from benchmarks.harness import alternate, median, parser, ratio, say, spread
from benchmarks.pong.emulator import NUM_ACTIONS, make_pong
from benchmarks.pong.reporting import make_report

START_LIMIT_S = 180.0
"""Limit for making the environments: 128 of them take some ten seconds."""
WARM_UP_TICKS = 20


@dataclass(frozen=True)
class Layout:
    """How the games share processes and threads."""

    processes: int
    groups: int
    envs: int
    threads: int

    @classmethod
    def parse(cls, text: str) -> Layout:
        return cls(*(int(part) for part in text.split("x")))

    def __str__(self) -> str:
        return "x".join(str(part) for part in astuple(self))

    @property
    def in_words(self) -> str:
        return (
            f"{self.processes} processes x {self.groups} groups x {self.envs} environments, "
            f"{self.threads} threads each"
        )


def usual_layouts(cores: int) -> list[Layout]:
    """Return one process with many threads (one and two groups), and one process per core."""
    return [
        Layout(1, 1, 16 * cores, cores),
        Layout(1, 1, 8 * cores, cores),
        Layout(1, 2, 4 * cores, cores),
        Layout(cores, 1, 16, 1),
        Layout(max(1, cores - 1), 1, 32, 1),
    ]


def measure(layout: Layout, seconds: float, seed: int = 1) -> float:
    """Return the agent steps per second of all processes together."""
    context = multiprocessing.get_context("spawn")
    barrier, rates = context.Barrier(layout.processes), context.Queue()
    players = [
        context.Process(
            target=_play, args=(layout, seed + 1000 * index, seconds, barrier, rates), daemon=True
        )
        for index in range(layout.processes)
    ]
    for player in players:
        player.start()
    total = sum(rates.get(timeout=START_LIMIT_S + 2 * seconds) for _ in players)
    for player in players:
        player.join()
    return float(total)


def _play(layout: Layout, seed: int, seconds: float, barrier: Barrier, rates: Queue[float]) -> None:
    """Step the games of one process for so many seconds, at the same time as all others."""
    groups = [make_pong(layout.envs, layout.threads, stack_num=1) for _ in range(layout.groups)]
    actions = np.random.default_rng(seed).integers(NUM_ACTIONS, size=(997, layout.envs))
    for group, env in enumerate(groups):
        env.reset(seed=seed + group * layout.envs)
        env.send(actions[group])
    ticks = 0

    def tick() -> None:
        nonlocal ticks
        for env in groups:
            env.recv()
            env.send(actions[ticks % len(actions)])
        ticks += 1

    while ticks < WARM_UP_TICKS:
        tick()
    barrier.wait(START_LIMIT_S)
    ticks, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < seconds:
        tick()
    rates.put(ticks * layout.groups * layout.envs / elapsed)


def best_layout(
    layouts: Sequence[Layout], seconds: float, rounds: int = 1
) -> tuple[Layout, dict[Layout, list[float]]]:
    """Measure all layouts in turns; return the one with the highest median, and all rates."""
    rates: dict[Layout, list[float]] = {layout: [] for layout in layouts}
    for layout, seed in alternate(layouts, range(1, rounds + 1)):
        rates[layout].append(measure(layout, seconds, seed))
        say(f"{layout}: {rates[layout][-1]:,.0f} steps/s")
    return max(layouts, key=lambda layout: median(rates[layout]) or 0.0), rates


def main(argv: Sequence[str] | None = None) -> int:
    made = parser(__doc__ or "")
    made.add_argument("--seconds", type=float, default=5.0, help="length of each measurement")
    made.add_argument("--rounds", type=int, default=1, help="measurements of each layout")
    made.add_argument("--layouts", nargs="+", type=Layout.parse, metavar="PxGxNxT")
    args = made.parse_args(argv)
    cores = len(os.sched_getaffinity(0))
    layouts = args.layouts or usual_layouts(cores)
    if args.quick:
        layouts, args.seconds, args.rounds = [Layout(1, 2, 2, 1), Layout(2, 1, 2, 1)], 0.2, 1
    report = make_report("bare", args)
    best, rates = best_layout(layouts, args.seconds, args.rounds)
    for layout, values in rates.items():
        for round_, value in enumerate(values, 1):
            report.add(str(layout), round_, {"steps_per_s": value})
    top = median(rates[best])
    report.note(best_layout=str(best), best_steps_per_s=top)
    rows = [
        [
            str(layout),
            layout.in_words,
            spread(values, 0),
            f"{ratio(median(values), top) or 0:.2f}",
        ]
        for layout, values in rates.items()
    ]
    title = f"Bare ALE Pong, random actions, {cores} cores"
    report.table(title, ["layout", "in words", "agent steps/s", "x best"], rows)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
