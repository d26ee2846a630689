"""Prioritised replay: how often per second can 512 of 1,000,000 items be drawn and written back?

    python -m benchmarks.priorities.bench                  10 rounds, about a minute
    python -m benchmarks.priorities.bench --device cuda    the tensor form on a GPU as well
    python -m benchmarks.priorities.bench --quick

One call is what a learner needs for one batch: stratified random numbers, the draw, the importance
weights, and the write-back of new priorities. One thread; same run. Nothing waits, so that on a
quiet machine the rates per second of CPU time and of wall time are the same; on a GPU only wall
time counts.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
import torch

from benchmarks.harness import Report, alternate, median, parser, ratio, spread
from benchmarks.priorities.others import FlatSum, PerItemTree
from tianji.ops.sum_tree import FAN_OUT, MAX_TOP_NODES, Doubles, Indices, SumTree
from tianji.ops.tensor_sum_tree import TensorSumTree

LEAVES, BATCH, BETA = 1_000_000, 512, 0.4
CALLS_PER_S = 2_000.0
OURS, PER_ITEM, FLAT = "ours", "per-item Python tree", "flat cumulative sum"
LAYOUTS = [
    (2, 1), (2, 4096), (4, 4096), (8, 1), (8, 256), (8, 4096),
    (16, 1), (16, 256), (16, 4096), (32, 32), (32, 1024), (64, 256),
]  # fmt: skip
TENSOR_FAN_OUTS = (16, 32, 128, 1024)

Run = Callable[[int], None]
"""Makes a number of calls."""


class Priorities(Protocol):
    def draw(self, u_B: Doubles) -> Indices: ...
    def importance_weight(self, index_B: Indices, beta: float) -> Doubles: ...
    def set(self, index_B: Indices, priority_B: Doubles) -> None: ...


def start_priorities() -> Doubles:
    """A tenth of the leaves has priority 0, as rows that cannot be drawn have."""
    rng = np.random.default_rng(0)
    return np.abs(rng.standard_normal(LEAVES)) ** 0.6 * (rng.random(LEAVES) < 0.9)


def on_arrays(priorities: Priorities) -> Run:
    rng = np.random.default_rng(1)
    stratum_B = np.arange(BATCH)
    new_priorities = np.abs(rng.standard_normal((64, BATCH))) ** 0.6

    def run(num_calls: int) -> None:
        for call in range(num_calls):
            index_B = priorities.draw((stratum_B + rng.random(BATCH)) / BATCH)
            priorities.importance_weight(index_B, BETA)
            priorities.set(index_B, new_priorities[call % 64])

    return run


def sum_tree(fan_out: int = FAN_OUT, max_top_nodes: int = MAX_TOP_NODES) -> SumTree:
    tree = SumTree(LEAVES, fan_out, max_top_nodes)
    tree.set(np.arange(LEAVES), start_priorities())
    return tree


def tensor_call(fan_out: int, device: str) -> Callable[[], None]:
    tree = TensorSumTree(LEAVES, fan_out, device)
    priority_N = torch.from_numpy(start_priorities()).to(device)
    part = 10_000  # a call gathers fan_out numbers for each index
    for start in range(0, LEAVES, part):
        tree.set(torch.arange(start, start + part, device=device), priority_N[start : start + part])
    stratum_B = torch.arange(BATCH, dtype=torch.float64, device=device)
    new_priority_B = torch.rand(BATCH, device=device)

    def call() -> None:
        u_B = (stratum_B + torch.rand(BATCH, dtype=torch.float64, device=device)) / BATCH
        index_B = tree.draw(u_B)
        tree.importance_weight(index_B, BETA)
        tree.set(index_B, new_priority_B)

    return call


def repeated(call: Callable[[], None], end: Callable[[], None] = lambda: None) -> Run:
    def run(num_calls: int) -> None:
        for _ in range(num_calls):
            call()
        end()

    return run


def on_cuda(fan_outs: tuple[int, ...]) -> Iterator[tuple[str, Run]]:
    """Each fan-out call by call and as a CUDA graph; the device is waited for once per turn."""
    for fan_out in fan_outs:
        call = tensor_call(fan_out, "cuda")
        call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            call()
        yield f"GPU, fan-out {fan_out}", repeated(call, torch.cuda.synchronize)
        yield f"GPU, fan-out {fan_out}, CUDA graph", repeated(graph.replay, torch.cuda.synchronize)


def check_agreement() -> None:
    """All methods must draw the same leaves, apart from u within rounding of a border."""
    u_B = np.random.default_rng(2).random(20_000)
    start_N = start_priorities()
    expected_B = FlatSum(start_N).draw(u_B)
    for method in (PerItemTree(start_N), sum_tree()):
        if (method.draw(u_B) == expected_B).mean() < 0.999:
            raise AssertionError(f"{type(method).__name__} draws other leaves than a flat sum")


def calls_that_take(run: Run, seconds: float) -> int:
    run(3)
    started = time.perf_counter()
    run(5)
    return max(1, round(5 * seconds / (time.perf_counter() - started)))


def compare(
    report: Report, title: str, runs: dict[str, Run], rounds: int, turn_s: float
) -> dict[str, list[float]]:
    """Turns of a fraction of a second; return the calls per second of CPU time of each turn."""
    num_calls = {name: calls_that_take(run, turn_s) for name, run in runs.items()}
    per_s: dict[str, list[float]] = {name: [] for name in runs}
    per_cpu_s: dict[str, list[float]] = {name: [] for name in runs}
    for name, turn in alternate(list(runs), range(rounds)):
        started, cpu_started = time.perf_counter(), time.thread_time()
        runs[name](num_calls[name])
        wall_s, cpu_s = time.perf_counter() - started, time.thread_time() - cpu_started
        per_s[name].append(num_calls[name] / wall_s)
        per_cpu_s[name].append(num_calls[name] / cpu_s)
        figures = {"calls_per_s": per_s[name][-1], "calls_per_cpu_s": per_cpu_s[name][-1]}
        report.add(name, turn, {"table": title, **figures})
    rows = [[name, spread(per_cpu_s[name], 0), spread(per_s[name], 0)] for name in runs]
    report.table(title, ["method", "calls per s of CPU time", "calls per s of wall time"], rows)
    return per_cpu_s


def main() -> int:
    made = parser(__doc__ or "")
    made.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    made.add_argument("--rounds", type=int, default=10)
    args = made.parse_args()
    rounds, turn_s = (1, 0.02) if args.quick else (args.rounds, 0.3)
    torch.set_num_threads(1)
    check_agreement()
    report = Report("priorities", args)
    report.note(leaves=LEAVES, batch=BATCH, device=args.device)
    runs = {
        OURS: on_arrays(sum_tree()),
        PER_ITEM: on_arrays(PerItemTree(start_priorities())),
        FLAT: on_arrays(FlatSum(start_priorities())),
        "ours, tensors on the CPU": repeated(tensor_call(16, "cpu")),
    }
    if args.device == "cuda":
        report.note(gpu=torch.cuda.get_device_name())
        runs.update(on_cuda(TENSOR_FAN_OUTS))
    title = f"Draw {BATCH} of {LEAVES:,}, weigh and write back"
    rates = compare(report, title, runs, rounds, turn_s)
    report.check(f"{OURS}, calls per second of CPU time", median(rates[OURS]), ">=", CALLS_PER_S)
    for other in (PER_ITEM, FLAT):
        gain = ratio(median(rates[OURS]), median(rates[other]))
        report.check(f"{OURS} / {other}", gain, ">=", 1.0)
    layouts = {
        f"fan-out {fan_out}, top of at most {top}": on_arrays(sum_tree(fan_out, top))
        for fan_out, top in LAYOUTS
    }
    compare(report, "Layouts of our tree in NumPy", layouts, rounds, turn_s)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
