"""Measure one version of PPO as the learner makes it: a batch in, updates, the policy out.

    python -m benchmarks.pong.version
    python -m benchmarks.pong.version --device cpu --versions 1
    python -m benchmarks.pong.version --quick

A version is 4,096 steps, 4 epochs of minibatches of 1,024, the copy of the policy to the host and
the figures. It comes as 2 unrolls of 64 environments or as 32 of 4, whose frames a server's
inference has uploaded, as in a served run. CPU time is that of the learner's thread: what exceeds
the GPU's own time is spent on launching. Calls are those of torch outside of CUDA graphs, views
included. On a CPU there are neither twins nor graphs, and all work counts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.harness import alternate, median, parser, spread
from benchmarks.pong.reporting import make_report
from benchmarks.pong.served import (
    SPACES,
    Layout,
    make_lanes,
    make_model,
    make_slots,
    milliseconds,
    prepare,
)
from tianji.algorithms.ppo.update import PPOUpdate
from tianji.config.run import RunConfig
from tianji.models.tensors import Snapshot
from tianji.types import Array, Batch, Parts, Stamp

LAYOUTS = (Layout(2, 64, 32), Layout(32, 4, 32))
QUICK = (Layout(1, 2, 4), Layout(2, 1, 4))
EPOCHS, MINIBATCHES = 4, 4


class Calls(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the calls of torch."""

    count = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.count += 1
        return function(*args, **(kwargs or {}))


def make_version(layout: Layout, device: torch.device) -> Callable[[], None]:
    """Return what makes one version, with all graphs recorded."""
    minibatch = layout.steps // MINIBATCHES
    config = RunConfig(
        env="ALE/Pong-v5",
        num_envs=layout.unrolls * layout.envs,
        algorithm={
            "name": "ppo",
            "unroll_length": layout.rows,
            "epochs": EPOCHS,
            "minibatch_size": minibatch,
            "clip": 0.1,
            "entropy": 0.01,
        },
    )
    model = make_model(config, device)
    update, snapshot = PPOUpdate(model, SPACES, config), Snapshot(model)
    buffer = np.empty(snapshot.nbytes, np.uint8)
    slots = make_slots(layout, layout.unrolls, device.type == "cuda")
    lanes = make_lanes(model, slots, layout.unrolls)
    outputs_LNA = np.zeros((layout.unrolls, layout.envs, SPACES.action.n), np.float32)  # type: ignore[attr-defined]
    for row in range(layout.rows):
        lanes.evaluate([(lane, lane, row) for lane in range(layout.unrolls)], outputs_LNA)

    def version() -> None:
        for minibatch in update.minibatches(make_batch(layout, slots), 0.0):
            minibatch.gradient()
            minibatch.step()
        snapshot.write_to(buffer)
        update.metrics()

    version()
    return version


def make_batch(layout: Layout, slots: dict[str, Array]) -> Batch:
    """Lay the unrolls side by side, as the store does."""
    arrays: dict[str, Any] = {
        name: np.concatenate(tuple(array), 1) for name, array in slots.items() if name != "obs"
    }
    arrays["obs"] = Parts(tuple(slots["obs"]), 1) if layout.unrolls > 1 else slots["obs"][0]
    steps = layout.envs * layout.rows
    stamps = tuple(Stamp(actor, 0, 0, 0, steps, 0, 0) for actor in range(layout.unrolls))
    return Batch(arrays, stamps, layout.unrolls, layout.steps)


def count_calls(version: Callable[[], None]) -> int:
    calls = Calls()  # type: ignore[no-untyped-call]
    with calls:
        version()
    return calls.count


def main(argv: Sequence[str] | None = None) -> int:
    made = parser(__doc__ or "")
    made.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    made.add_argument("--versions", type=int, default=20, help="in each turn")
    made.add_argument("--rounds", type=int, default=5)
    args = made.parse_args(argv)
    layouts = LAYOUTS
    if args.quick:
        layouts, args.versions, args.rounds = QUICK, 1, 1
    device = torch.device(args.device)
    prepare(device)
    report = make_report("version", args)
    report.note(device=args.device)
    versions = {layout: make_version(layout, device) for layout in layouts}
    wall: dict[Layout, list[float]] = {layout: [] for layout in layouts}
    cpu: dict[Layout, list[float]] = {layout: [] for layout in layouts}
    for layout, turn in alternate(layouts, range(args.rounds)):
        wall_ms, cpu_ms = milliseconds(versions[layout], args.versions)
        wall[layout].append(wall_ms)
        cpu[layout].append(cpu_ms)
        report.add(str(layout), turn, {"wall_ms": wall_ms, "cpu_ms": cpu_ms})
    calls = {str(layout): count_calls(version) for layout, version in versions.items()}
    report.note(calls=calls)
    rows = [
        [str(layout), spread(wall[layout]), spread(cpu[layout]), str(calls[str(layout)])]
        for layout in layouts
    ]
    title = f"One version of PPO, {layouts[0].steps:,} steps, {args.device}"
    report.table(title, ["batch", "wall ms", "CPU ms of the thread", "calls of torch"], rows)
    few, many = (median(wall[layout]) for layout in layouts)
    report.note(many_over_few=None if not few or not many else many / few)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
