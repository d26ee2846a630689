"""Measure updates of the Nature-CNN alone: no emulator, no inference, the batch is on the device.

    python -m benchmarks.pong.learner_alone --device cuda
    python -m benchmarks.pong.learner_alone --quick

Every contestant makes PPO updates on minibatches of 1024 stacks of 4 frames (bytes), drawn from a
batch of 4096 that stays on the device, and reports samples per second. On a GPU the networks run
in bf16. `CONTESTANTS` lists who takes part; a contestant is a function that takes the batch and
returns `run`, which makes some updates, waits for the device and returns the number of samples.
The GPU's busy share is the union of all kernel intervals over the wall time, from torch's
profiler, in a run of its own.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from benchmarks.harness import alternate, median, parser, ratio, spread
from benchmarks.pong.emulator import NUM_ACTIONS
from benchmarks.pong.ppo import FRAMES, PPO, Settings
from benchmarks.pong.reporting import make_report

EAGER = "plain eager"


class Batch(NamedTuple):
    """Made-up experience on the device; only the time matters."""

    frames: Tensor
    action: Tensor
    log_prob: Tensor
    advantage: Tensor
    target: Tensor


Run = Callable[[], int]


def make_batch(settings: Settings, device: torch.device) -> Batch:
    rows = settings.batch
    return Batch(
        torch.randint(0, 256, (rows, *FRAMES), dtype=torch.uint8, device=device),
        torch.randint(0, NUM_ACTIONS, (rows,), device=device),
        torch.full((rows,), -1.79, device=device),
        torch.randn(rows, device=device),
        torch.randn(rows, device=device),
    )


def plain_eager(settings: Settings, batch: Batch) -> Run:
    """The serial loop's own update: autocast, fused Adam, no graph, no compiler."""
    device = batch.frames.device
    ppo = PPO(settings, NUM_ACTIONS, device)

    def run() -> int:
        for _ in range(settings.epochs):
            order = torch.randperm(settings.batch, device=device)
            for chosen in order.split(settings.minibatch):
                ppo.update_minibatch(*(values[chosen] for values in batch))
        wait_for(device)
        return settings.epochs * settings.batch

    return run


CONTESTANTS: dict[str, Callable[[Settings, Batch], Run]] = {EAGER: plain_eager}
"""TianJi's own update joins here under the name `tianji`."""


def wait_for(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def samples_per_s(run: Run, seconds: float) -> float:
    samples, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < seconds:
        samples += run()
    return samples / elapsed


def covered(intervals: Iterable[tuple[float, float]]) -> float:
    """Return the length of the union of intervals."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(intervals):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def busy_share(run: Run) -> float:
    """Return the share of the wall time in which at least one kernel or copy runs on the GPU."""
    with profile(activities=[ProfilerActivity.CUDA]) as recorded:
        started = time.perf_counter()
        run()
        wall_us = 1e6 * (time.perf_counter() - started)
    on_gpu = [
        (event.time_range.start, event.time_range.end)
        for event in recorded.events() or ()
        if event.device_type.name == "CUDA" and not event.is_user_annotation
    ]
    return covered(on_gpu) / wall_us


def main(argv: Sequence[str] | None = None) -> int:
    made = parser(__doc__ or "")
    made.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    made.add_argument("--seconds", type=float, default=2.0, help="length of each turn")
    made.add_argument("--rounds", type=int, default=7)
    made.add_argument("--minibatch", type=int, default=1024)
    args = made.parse_args(argv)
    settings = Settings(minibatch=args.minibatch)
    if args.quick:
        settings = Settings(num_envs=4, num_steps=4, epochs=1, minibatch=8)
        args.seconds, args.rounds = 0.1, 1
    device = torch.device(args.device)
    torch.backends.cudnn.benchmark = True
    report = make_report("learner_alone", args)
    report.note(device=args.device, minibatch=settings.minibatch)
    batch = make_batch(settings, device)
    runs = {name: build(settings, batch) for name, build in CONTESTANTS.items()}
    for run in runs.values():
        run()
    rates: dict[str, list[float]] = {name: [] for name in runs}
    for name, turn in alternate(list(runs), range(args.rounds)):
        rates[name].append(samples_per_s(runs[name], args.seconds))
        report.add(name, turn, {"samples_per_s": rates[name][-1]})
    shares = {
        name: busy_share(run) if device.type == "cuda" else None for name, run in runs.items()
    }
    report.note(gpu_busy_share=shares)
    eager = median(rates[EAGER])
    rows = []
    for name, values in rates.items():
        share = shares[name]
        times = ratio(median(values), eager)
        rows.append(
            [name, spread(values, 0), f"{times:.2f}", "-" if share is None else f"{share:.2f}"]
        )
        if name != EAGER:
            report.check(f"{name} / plain eager", times, ">=", 1.5)
    title = f"Nature-CNN update, minibatch {settings.minibatch}, {args.device}"
    report.table(title, ["contestant", "samples/s", "x eager", "GPU busy share"], rows)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
