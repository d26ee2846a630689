"""What one PPO update costs: ours, ordinary torch code, and the matrix products alone. One thread.

python -m benchmarks.learner_update.bench            20 rounds, about a minute
python -m benchmarks.learner_update.bench --quick
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

import torch

from benchmarks.harness import Report, alternate, parser, spread
from benchmarks.learner_update.ordinary import OrdinaryPPO, Sizes, shapes
from benchmarks.limits import BareUpdate
from benchmarks.rooms import ActorRoom, build_update, make_spec
from tianji.buffer.stores.queue import Queue
from tianji.channels.layout import Layout
from tianji.engines.assembly.build import RunSpec

Run = Callable[[], int]


def sizes_of(spec: RunSpec) -> Sizes:
    """The sizes that the preset asks for, so that all contestants do the same work."""
    config = spec.config
    algorithm = config.algorithm.model_dump()
    steps = spec.plan.unrolls_per_version * spec.plan.steps_per_unroll
    return Sizes(
        unroll_length=spec.plan.unroll_length,
        num_envs=steps // spec.plan.unroll_length,
        epochs=algorithm["epochs"],
        minibatch=algorithm["minibatch_size"],
        hidden=config.model.hidden,
    )


def ours(spec: RunSpec) -> Run:
    """The learner's update on a batch that our actor made; all epochs, as the learner runs them."""
    room, update = ActorRoom(spec), build_update(spec)
    queue = Queue(room.receiver, Layout.from_json(spec.plan.layout).env_axes())
    for _ in range(spec.plan.unrolls_per_version):
        slot = room.make_unroll()
        queue.put(slot, room.receiver.stamp(slot))
    batch = queue.take(0)

    def run() -> int:
        num_updates = 0
        for minibatch in update.minibatches(batch, 0.0):
            minibatch.gradient()
            minibatch.step()
            num_updates += 1
        update.metrics()
        return num_updates

    return run


def bare(sizes: Sizes) -> Run:
    products = BareUpdate(sizes.minibatch, shapes(sizes))

    def run() -> int:
        for _ in range(sizes.num_updates):
            products.run()
        return sizes.num_updates

    return run


def measure(report: Report, runs: dict[str, Run], rounds: int) -> dict[str, list[float | None]]:
    """Milliseconds per update; every turn is a fifth of a second of one contestant."""
    results: dict[str, list[float | None]] = {name: [] for name in runs}
    for run in runs.values():
        run()
    for name, turn in alternate(list(runs), range(rounds)):
        updates, started = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - started) < 0.2:
            updates += runs[name]()
        results[name].append(1e3 * elapsed / updates)
        report.add(name, turn, {"ms_per_update": 1e3 * elapsed / updates})
    return results


def main() -> int:
    made = parser(__doc__ or "")
    made.add_argument("--rounds", type=int, default=20)
    made.add_argument("--preset", default="cartpole-ppo")
    args = made.parse_args()
    report = Report("learner_update", args)
    torch.set_num_threads(1)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    # A run that stops early for a large divergence would do less work than the others.
    spec = make_spec(args.preset, algorithm={"target_kl": None, "learning_rate": 1e-6})
    sizes = sizes_of(spec)
    report.note(sizes=str(sizes))
    runs = {"ours": ours(spec), "ordinary torch": OrdinaryPPO(sizes).run, "bare": bare(sizes)}
    results = measure(report, runs, 3 if args.quick else args.rounds)
    rows = []
    for name, values in results.items():
        by_turn = [
            mine / ordinary
            for mine, ordinary in zip(values, results["ordinary torch"], strict=True)
        ]
        to_bare = [mine / floor for mine, floor in zip(values, results["bare"], strict=True)]
        rows.append([name, spread(values, 3), spread(by_turn), spread(to_bare)])
    title = f"One PPO update: minibatch {sizes.minibatch}, {sizes.epochs} epochs, one thread"
    report.table(title, ["contestant", "ms per update", "x ordinary", "x bare"], rows)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
