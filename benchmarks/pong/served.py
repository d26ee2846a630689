"""Made-up unrolls of Pong in slots, with the twins that a server's inference leaves of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from gymnasium.spaces import Discrete

from benchmarks.pong.emulator import NUM_ACTIONS
from tianji.algorithms.accelerators.inference import Network
from tianji.algorithms.accelerators.lanes import LaneInference, build_lanes
from tianji.algorithms.actor_critic.model import POLICY, ActorCritic, build_model
from tianji.config.run import RunConfig
from tianji.devices.pinned import pin
from tianji.engines.assembly.model import use_device
from tianji.envs.interface import Spaces
from tianji.envs.spaces import Frames
from tianji.models.networks.precision import set_precision
from tianji.models.tensors import flatten
from tianji.types import Array

NUM_FRAMES = 4
SPACES = Spaces(Frames(NUM_FRAMES, (84, 84)), Discrete(NUM_ACTIONS))


class Layout(NamedTuple):
    """Unrolls of a version, environments of each, and rows."""

    unrolls: int
    envs: int
    rows: int

    @property
    def steps(self) -> int:
        return self.unrolls * self.envs * self.rows

    def __str__(self) -> str:
        return f"{self.unrolls} unrolls of {self.envs} environments, {self.rows} rows"


def make_slots(layout: Layout, num_slots: int, is_gpu: bool) -> dict[str, Array]:
    """Return the fields of all slots, in memory that a GPU reads by itself."""
    random = np.random.default_rng(1)
    shape = (num_slots, layout.rows, layout.envs)
    frames = (num_slots, NUM_FRAMES + layout.rows, layout.envs, 84, 84)
    slots: dict[str, Array] = {
        "obs": random.integers(256, size=frames, dtype=np.uint8),
        "age": np.full((num_slots, layout.rows + 1, layout.envs), 9, np.uint8),
        "action": random.integers(NUM_ACTIONS, size=shape),
        "log_prob": np.full(shape, -np.log(NUM_ACTIONS), np.float32),
        "reward": random.integers(-1, 2, size=shape).astype(np.float32),
        "terminated": random.random(shape) < 0.001,
        "truncated": np.zeros(shape, np.bool_),
        "valid": np.ones(shape, np.bool_),
    }
    if is_gpu:
        pin(slots["obs"])
    return slots


def make_model(config: RunConfig, device: torch.device) -> ActorCritic:
    """Return the Nature-CNN, in bf16 on a GPU as in a run."""
    model = build_model(SPACES, config).to(device)
    flatten(model)
    set_precision(model, device.type == "cuda")
    return model


def make_lanes(model: ActorCritic, slots: dict[str, Array], num_lanes: int) -> LaneInference:
    """Return a server's inference for so many actors."""
    network = Network(model.net, POLICY, model.head.layout.num_outputs)
    return build_lanes(network, SPACES.observation, slots, num_lanes)


def prepare(device: torch.device) -> None:
    """Work on a stream of this thread's own, as roles do."""
    torch.set_num_threads(1)
    use_device("cpu" if device.type == "cpu" else f"cuda:{device.index or 0}", is_urgent=True)


def milliseconds(call: Callable[[], object], count: int) -> tuple[float, float]:
    """Return wall time and this thread's CPU time of each of so many calls."""
    wall_s, cpu_s = time.perf_counter(), time.thread_time()
    for _ in range(count):
        call()
    wall_s, cpu_s = time.perf_counter() - wall_s, time.thread_time() - cpu_s
    return 1e3 * wall_s / count, 1e3 * cpu_s / count
