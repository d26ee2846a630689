"""Builds the replay store of a run: its memory, its sampler, and what checkpoints hold of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from tianji.algorithms.interface import ReplayCadence
from tianji.buffer.stores.device_observations import on_device
from tianji.buffer.stores.proportional import ProportionalSampler
from tianji.buffer.stores.replay import Replay, ReplayPlan
from tianji.buffer.stores.ring_layout import AUTO_SAVE_BYTES, RingLayout
from tianji.buffer.stores.rings import Rings
from tianji.buffer.stores.sampling import Sampler, UniformSampler
from tianji.channels.interface import Receiver
from tianji.checkpoint.writer import to_size
from tianji.engines.assembly.wiring import replay_layout
from tianji.engines.spec import RunSpec
from tianji.errors import UsageError
from tianji.models.sizes import reward_clip

OpenMemory = Callable[[RingLayout], Any]
"""Opens the replay store's memory."""


def build_replay(
    spec: RunSpec,
    receiver: Receiver,
    open_memory: OpenMemory,
    cadence: ReplayCadence,
    seed: int,
) -> Replay:
    layout = replay_layout(spec.plan)
    assert layout is not None, "a plan with this cadence has a replay store"
    nbytes = replace(layout, has_observations=True).nbytes
    place = on_device(torch.device(spec.plan.device)) if spec.plan.replay_on_gpu else None
    clip = reward_clip(spec.spaces, spec.config)
    rings = Rings(layout, open_memory(layout), place, clip)
    sampler: Sampler = UniformSampler(rings)
    if cadence.sampling is not None:
        sampler = ProportionalSampler(rings, cadence.sampling)
    plan = ReplayPlan(
        unroll_length=cadence.unroll_length,
        ratio=cadence.ratio,
        warmup_unrolls=spec.plan.warmup_unrolls,
        minibatch=cadence.trained_steps_per_version // cadence.num_updates,
        gamma=spec.config.algorithm.gamma,
        seed=seed,
        saves_items=_saves_items(spec, nbytes),
        saves_last=spec.config.checkpoint.save_replay,
        n_step=cadence.n_step,
        updates_per_batch=cadence.num_updates,
        keeps_ratio=spec.plan.balance == "paced",
    )
    if plan.saves_last:
        _check_disk(spec, nbytes)
    return Replay(plan, receiver, rings, sampler)


def _saves_items(spec: RunSpec, nbytes: int) -> bool:
    asked = spec.config.checkpoint.replay
    if asked != "auto":
        return asked
    kept = spec.config.checkpoint.keep_last + 2  # the best one, and the one being written
    free = shutil.disk_usage(spec.run_dir).free
    return nbytes <= AUTO_SAVE_BYTES and kept * nbytes <= free


def _check_disk(spec: RunSpec, nbytes: int) -> None:
    """Raise UsageError if a full store cannot be saved."""
    free = shutil.disk_usage(spec.run_dir).free
    if nbytes > free:
        raise UsageError(
            f"save_replay is set, and a full replay store takes {to_size(nbytes)} on the disk of "
            f"{spec.run_dir}, where {to_size(free)} are free. Free some space, use a smaller "
            "replay_size, or set save_replay to false."
        )
