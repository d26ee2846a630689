"""Records CUDA graphs while a role starts, before anything waits for it.

Each graph is recorded when its shapes are first used. A learner that first uses them in its first
version would be silent for seconds while the supervisor expects signs of life, and a recording in
the first step would be part of the measured rates.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import numpy as np
import torch

from tianji.algorithms.accelerators.gpu import GpuRows
from tianji.algorithms.accelerators.inference import RowActing
from tianji.algorithms.interface import Acting, ReplayCadence, Update
from tianji.algorithms.registry import load_algorithm
from tianji.channels.layout import Layout
from tianji.engines.spec import RunSpec
from tianji.envs.spaces import observation_leaves
from tianji.errors import TrainingDiverged
from tianji.models.tensors import device_of
from tianji.types import NEXT_OBS, OBS, Array, Batch, Stamp, Unroll, leaf_name


class StartTimes:
    """Seconds that preparing a GPU has taken, by what was done."""

    def __init__(self) -> None:
        self.spent_s: dict[str, float] = {}

    @contextmanager
    def measure(self, what: str) -> Iterator[None]:
        began_s = time.monotonic()
        yield
        passed_s = time.monotonic() - began_s
        self.spent_s[what] = self.spent_s.get(what, 0.0) + passed_s

    def in_words(self) -> str:
        """Return a sentence; empty where nothing was done."""
        done = ", ".join(f"{what} {seconds:.2f} s" for what, seconds in self.spent_s.items())
        return f"The GPU was prepared, as a part of the start-up time: {done}." if done else ""


REGISTER, RECORD = "registering slots", "recording CUDA graphs"


def record_update(
    spec: RunSpec, model: torch.nn.Module, update: Update, show_life: Callable[[], None]
) -> None:
    """Make a version from a batch of zeros, and undo it: parameters, optimiser, statistics and
    random numbers are what they were. show_life: called after each update."""
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    state, device = update.state(), device_of(model)
    devices = [device] if device.type == "cuda" else []
    # A network may not be finite at zero. That is found in training, if it matters there.
    with torch.random.fork_rng(devices), suppress(TrainingDiverged):
        for minibatch in update.minibatches(zero_batch(spec), 0.0):
            minibatch.gradient()
            minibatch.step()
            show_life()
        update.metrics()
    model.load_state_dict(weights)
    update.load_state(state)


def record_rows(spec: RunSpec, acting: Acting) -> None:
    """Evaluate a row of zeros, where an actor infers on a GPU."""
    if isinstance(acting, RowActing) and isinstance(acting.rows, GpuRows):
        acting.rows.record(zero_unroll(spec))


def zero_unroll(spec: RunSpec) -> Unroll:
    """Return an unroll of the planned shapes, whose rows are all valid."""
    layout = Layout.from_json(spec.plan.layout)
    arrays = layout.arrays(bytearray(layout.slot_bytes), 1)
    arrays["valid"][:] = True
    return {name: array[0] for name, array in arrays.items()}


def zero_batch(spec: RunSpec) -> Batch:
    """Return a batch of the planned shapes, as the store would give it."""
    cadence = load_algorithm(spec.config.algorithm.name).cadence(spec.config)
    if isinstance(cadence, ReplayCadence):
        return _zero_transitions(spec, cadence)
    plan, unroll = spec.plan, zero_unroll(spec)
    count = plan.unrolls_per_version
    axes = Layout.from_json(plan.layout).env_axes()
    arrays = {
        name: np.concatenate([unroll[name]] * count, axis or 0) for name, axis in axes.items()
    }
    stamps = tuple(
        Stamp(index % plan.num_actors, 0, 0, 0, plan.steps_per_unroll, 0, 0)
        for index in range(count)
    )
    return Batch(arrays, stamps, count, count * plan.steps_per_unroll)


def _zero_transitions(spec: RunSpec, cadence: ReplayCadence) -> Batch:
    """Return one minibatch: all have the same shapes."""
    size = cadence.trained_steps_per_version // cadence.num_updates
    action = zero_unroll(spec)["action"]
    arrays: dict[str, Array] = {
        "action": np.zeros((1, size, *action.shape[2:]), action.dtype),
        "reward": np.zeros((1, size), np.float32),
        "discount": np.zeros((1, size), np.float32),
    }
    for leaf in observation_leaves(spec.spaces.observation):
        for prefix in (OBS, NEXT_OBS):
            shape = (1, size, *leaf.shape)
            arrays[leaf_name(prefix, leaf.key)] = np.zeros(shape, leaf.dtype)
    if cadence.sampling is not None:
        arrays["weight"] = np.ones((1, size), np.float32)
        arrays["largest_weight"] = np.ones(1)
    return Batch(arrays, (), size, size, keys=np.zeros(size, np.int64))
