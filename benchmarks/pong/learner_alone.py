"""Measure updates of the Nature-CNN alone: no emulator, no inference, the batch is on the device.

    python -m benchmarks.pong.learner_alone --device cuda
    python -m benchmarks.pong.learner_alone --quick

Every contestant makes PPO updates on minibatches of 1024 stacks of 4 frames (bytes), drawn from a
batch of 4096 that stays on the device, and reports samples per second. On a GPU the networks run
in bf16. `CONTESTANTS` lists who takes part; a contestant is a function that takes the batch and
returns `run`, which makes some updates, waits for the device and returns the number of samples.

The plain eager loop makes the minibatch updates alone. TianJi makes whole versions, as its learner
does: it rebuilds the stacks from single frames, evaluates the batch, estimates advantages, makes
the same minibatch updates, and computes the metrics. On a GPU, gradients and optimiser steps are
CUDA graphs. They take turns in one run; medians count.

The GPU's busy share is the union of all kernel intervals over the wall time, from torch's
profiler, in a run of its own.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from gymnasium.spaces import Discrete
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from benchmarks.harness import alternate, median, parser, ratio, spread
from benchmarks.pong.emulator import NUM_ACTIONS
from benchmarks.pong.ppo import FRAMES, PPO, Settings
from benchmarks.pong.reporting import make_report
from tianji.algorithms.registry import load_algorithm
from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces
from tianji.envs.spaces import Frames
from tianji.models.networks.precision import set_precision
from tianji.types import Batch as Unrolls
from tianji.types import Stamp

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


def tianji(settings: Settings, batch: Batch) -> Run:
    """The update of TianJi's learner, on unrolls whose frames are on the device."""
    device = batch.frames.device
    config = RunConfig(
        num_envs=settings.num_envs,
        normalize={"rewards": False},
        algorithm={
            "name": "ppo",
            "unroll_length": settings.num_steps,
            "epochs": settings.epochs,
            "minibatch_size": settings.minibatch,
            "learning_rate": settings.learning_rate,
            "clip": settings.clip,
            "entropy": settings.entropy,
            "gamma": settings.gamma,
            "gae_lambda": settings.gae_lambda,
            "value_loss": settings.value_loss,
            "max_grad_norm": settings.max_grad_norm,
        },
    )
    spaces = Spaces(Frames(FRAMES[0], FRAMES[1:]), Discrete(NUM_ACTIONS))
    algorithm = load_algorithm("ppo")
    model = algorithm.build_model(spaces, config).to(device)
    set_precision(model, device.type == "cuda")
    update = algorithm.build_update(model, spaces, config)
    unrolls = make_unrolls(settings, device)

    def run() -> int:
        for minibatch in update.minibatches(unrolls, progress=0.0):
            minibatch.gradient()
            minibatch.step()
        update.metrics()  # waits for the device
        return settings.epochs * settings.batch

    return run


def make_unrolls(settings: Settings, device: torch.device) -> Unrolls:
    """Return made-up unrolls of all environments: single frames, and how old each is."""
    num_frames, shape = FRAMES[0], (settings.num_steps, settings.num_envs)
    rows = settings.num_steps + num_frames
    frames = torch.randint(0, 256, (rows, shape[1], *FRAMES[1:]), dtype=torch.uint8, device=device)
    random = np.random.default_rng(1)
    arrays = {
        "obs": frames if device.type == "cuda" else frames.numpy(),
        "age": np.full((settings.num_steps + 1, settings.num_envs), num_frames, np.uint8),
        "action": random.integers(NUM_ACTIONS, size=shape),
        "log_prob": np.full(shape, -1.79, np.float32),
        "reward": random.standard_normal(shape, np.float32),
        "terminated": np.zeros(shape, np.bool_),
        "truncated": np.zeros(shape, np.bool_),
        "valid": np.ones(shape, np.bool_),
    }
    stamp = Stamp(0, 0, 0, 0, settings.batch, 0, 0)
    return Unrolls(arrays, (stamp,), num_items=1, num_steps=settings.batch)


CONTESTANTS: dict[str, Callable[[Settings, Batch], Run]] = {EAGER: plain_eager, "tianji": tianji}


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
