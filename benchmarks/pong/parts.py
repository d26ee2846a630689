"""Measure the three parts that PPO on pixels cannot do without, on all cores at the same time.

One process per core, pinned to it, with one thread, measures each part at the same time as the
others, as a perfectly divided run would use the machine. Each part is in core-seconds per agent
step:

- emulator: ALE's vector environment with random actions and single frames;
- inference: one forward pass without gradients for all environments together;
- update: forward, backward, clipping and Adam on one minibatch, times the epochs.

The networks are float32; the faster of both memory formats counts. The bound on agent steps per
second is then cores / (emulator + inference + update): no copies, no stacking of frames, no
sampling of actions, no waiting, and every core busy all the time.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier

import numpy as np
import torch

from benchmarks.limits import seconds_per_call
from benchmarks.pong.emulator import NUM_ACTIONS, make_pong
from benchmarks.pong.ppo import FRAMES, PPO, Settings

START_LIMIT_S = 120.0
FORMATS = (torch.contiguous_format, torch.channels_last)


@dataclass(frozen=True)
class Parts:
    """Core-seconds per agent step of each part."""

    cores: int
    emulator_s: float
    inference_s: float
    update_s: float

    @property
    def bound_steps_per_s(self) -> float:
        return self.cores / (self.emulator_s + self.inference_s + self.update_s)


def measure_parts(settings: Settings, seconds: float) -> Parts:
    """Measure each part for so many seconds; return the mean over all cores."""
    cores = sorted(os.sched_getaffinity(0))
    context = multiprocessing.get_context("spawn")
    barrier, found = context.Barrier(len(cores)), context.Queue()
    workers = [
        context.Process(
            target=_measure_on, args=(core, settings, seconds, barrier, found), daemon=True
        )
        for core in cores
    ]
    for worker in workers:
        worker.start()
    timeout_s = START_LIMIT_S + 10 * seconds
    per_core = np.array([found.get(timeout=timeout_s) for _ in workers])
    for worker in workers:
        worker.join()
    emulator_s, inference_s, update_s = per_core.mean(axis=0)
    return Parts(len(cores), float(emulator_s), float(inference_s), float(update_s))


def _measure_on(
    core: int,
    settings: Settings,
    seconds: float,
    barrier: Barrier,
    found: Queue[tuple[float, float, float]],
) -> None:
    os.sched_setaffinity(0, {core})
    torch.set_num_threads(1)

    def together(call: Callable[[], object]) -> float:
        barrier.wait(START_LIMIT_S)
        return seconds_per_call(call, seconds)

    emulator_s = together(_emulator(settings, seed=core)) / settings.num_envs
    inference_s = min(together(_inference(settings, layout)) for layout in FORMATS)
    update_s = min(together(_update(settings, layout)) for layout in FORMATS)
    found.put(
        (
            emulator_s,
            inference_s / settings.num_envs,
            update_s * settings.epochs / settings.minibatch,
        )
    )


def _emulator(settings: Settings, seed: int) -> Callable[[], object]:
    env = make_pong(settings.num_envs, num_threads=1, stack_num=1)
    env.reset(seed=seed)
    random = np.random.default_rng(seed)
    return lambda: env.step(random.integers(NUM_ACTIONS, size=settings.num_envs))


def _inference(settings: Settings, layout: torch.memory_format) -> Callable[[], object]:
    net = PPO(settings, NUM_ACTIONS, torch.device("cpu")).net.to(memory_format=layout)
    frames = torch.randint(0, 256, (settings.num_envs, *FRAMES), dtype=torch.uint8)

    def infer() -> object:
        with torch.inference_mode():
            return net(frames)

    return infer


def _update(settings: Settings, layout: torch.memory_format) -> Callable[[], object]:
    ppo = PPO(settings, NUM_ACTIONS, torch.device("cpu"))
    ppo.net.to(memory_format=layout)
    rows = settings.minibatch
    minibatch = (
        torch.randint(0, 256, (rows, *FRAMES), dtype=torch.uint8),
        torch.randint(0, NUM_ACTIONS, (rows,)),
        torch.full((rows,), -1.79),
        torch.randn(rows),
        torch.randn(rows),
    )
    return lambda: ppo.update_minibatch(*minibatch)
