"""Measure a server's inference: what does an evaluation of some actors' rows cost its thread?

    python -m benchmarks.pong.server
    python -m benchmarks.pong.server --device cpu --evaluations 20
    python -m benchmarks.pong.server --quick

32 actors of 4 environments each ask for rows of their unrolls one after the other, as they would in
a run; so many of them at once as the first column says. `evaluate` is the upload of the new frames,
the network and the copy of its outputs; `tick` is a whole turn of the server, from requests in
shared memory to answers, without waking anybody.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch

from benchmarks.harness import alternate, parser, spread
from benchmarks.pong.emulator import NUM_ACTIONS
from benchmarks.pong.reporting import make_report
from benchmarks.pong.served import (
    Layout,
    make_lanes,
    make_model,
    make_slots,
    milliseconds,
    prepare,
)
from tianji.algorithms.accelerators.lanes import LaneInference, Request
from tianji.channels.gauges import Gauge
from tianji.channels.interface import Bytes
from tianji.channels.requests import Answerer, Asker, RequestMemory
from tianji.config.run import RunConfig
from tianji.inference.role import InferenceServer

LAYOUT = Layout(32, 4, 32)
QUICK = Layout(2, 1, 4)
COUNTS = (1, 2, 3, 4, 6, 8, 16, 32)


class NoNews:
    """A board on which nothing new is posted."""

    def version(self) -> int:
        return -1

    def latest(self, read: Callable[[Bytes], None]) -> int:
        return -1


def turns(layout: Layout, count: int) -> Iterator[list[Request]]:
    """Yield what so many actors ask for, for ever; each goes on row by row."""
    row = dict.fromkeys(range(layout.unrolls), -1)
    for begin in itertools.count(0, count):
        lanes = [(begin + place) % layout.unrolls for place in range(count)]
        for lane in lanes:
            row[lane] = (row[lane] + 1) % layout.rows
        yield [(lane, lane, row[lane]) for lane in lanes]


class Rig:
    """A server, and the actors' ends of its requests."""

    def __init__(self, layout: Layout, device: torch.device) -> None:
        self._layout = layout
        config = RunConfig(env="ALE/Pong-v5", num_envs=128, algorithm={"name": "ppo"})
        slots = make_slots(layout, layout.unrolls, device.type == "cuda")
        self.lanes: LaneInference = make_lanes(make_model(config, device), slots, layout.unrolls)
        self._fd = os.memfd_create("requests")
        memory = RequestMemory.open(self._fd, layout.unrolls, layout.envs, NUM_ACTIONS)
        silent: Callable[[], None] = lambda: None  # noqa: E731
        self._askers = [Asker(memory, lane, silent) for lane in range(layout.unrolls)]
        self._outputs_LNA = memory.outputs_LNA
        self._server = InferenceServer(
            Answerer(memory),
            self.lanes,
            NoNews(),
            lambda _: None,
            [silent] * layout.unrolls,
            memoryview(np.zeros(len(Gauge), np.int64).data),
        )

    def evaluate(self, count: int) -> Callable[[], object]:
        asked = turns(self._layout, count)
        return lambda: self.lanes.evaluate(next(asked), self._outputs_LNA)

    def tick(self, count: int) -> Callable[[], object]:
        asked = turns(self._layout, count)

        def turn() -> None:
            for lane, slot, row in next(asked):
                self._askers[lane].ask(slot, row)
            self._server.tick()

        return turn


def main(argv: Sequence[str] | None = None) -> int:
    made = parser(__doc__ or "")
    made.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    made.add_argument("--evaluations", type=int, default=500, help="in each turn")
    made.add_argument("--rounds", type=int, default=5)
    args = made.parse_args(argv)
    layout, counts = LAYOUT, list(COUNTS)
    if args.quick:
        layout, counts, args.evaluations, args.rounds = QUICK, [1, 2], 2, 1
    device = torch.device(args.device)
    prepare(device)
    report = make_report("server", args)
    report.note(device=args.device)
    rig = Rig(layout, device)
    calls = {
        (what, count): make(count)
        for count in counts
        for what, make in (("evaluate", rig.evaluate), ("tick", rig.tick))
    }
    wall: dict[tuple[str, int], list[float]] = {key: [] for key in calls}
    cpu: dict[tuple[str, int], list[float]] = {key: [] for key in calls}
    for key, turn in alternate(list(calls), range(args.rounds)):
        wall_ms, cpu_ms = milliseconds(calls[key], args.evaluations)
        wall[key].append(1e3 * wall_ms)
        cpu[key].append(1e3 * cpu_ms)
        figures = {"rows": key[1], "wall_us": wall[key][-1], "cpu_us": cpu[key][-1]}
        report.add(key[0], turn, figures)
    rows = [
        [
            str(count),
            *(spread(of[what, count], 0) for what in ("evaluate", "tick") for of in (wall, cpu)),
        ]
        for count in counts
    ]
    headers = ["rows", "evaluate, wall us", "CPU us", "tick, wall us", "CPU us"]
    report.table(f"An evaluation for actors of {layout.envs}, {args.device}", headers, rows)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
