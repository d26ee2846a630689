"""Builds the replay store of a run: its memory, its sampler, and what checkpoints hold of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

from tianji.algorithms.interface import ReplayCadence
from tianji.buffer.stores.proportional import ProportionalSampler
from tianji.buffer.stores.replay import Replay, ReplayPlan
from tianji.buffer.stores.ring_layout import RingLayout
from tianji.buffer.stores.rings import Rings
from tianji.buffer.stores.sampling import Sampler, UniformSampler
from tianji.channels.interface import Receiver
from tianji.engines.assembly.wiring import replay_layout
from tianji.engines.spec import RunSpec

OpenMemory = Callable[[RingLayout], Any]
"""Opens the replay store's memory."""
AUTO_SAVE_BYTES = 256 << 20  # copied in a few hundredths of a second


def build_replay(
    spec: RunSpec,
    receiver: Receiver,
    open_memory: OpenMemory,
    cadence: ReplayCadence,
    seed: int,
) -> Replay:
    layout = replay_layout(spec.plan)
    assert layout is not None, "a plan with this cadence has a replay store"
    rings = Rings(layout, open_memory(layout))
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
        saves_items=_saves_items(spec, layout.nbytes),
    )
    return Replay(plan, receiver, rings, sampler)


def _saves_items(spec: RunSpec, nbytes: int) -> bool:
    asked = spec.config.checkpoint.replay
    if asked != "auto":
        return asked
    kept = spec.config.checkpoint.keep_last + 2  # the best one, and the one being written
    free = shutil.disk_usage(spec.run_dir).free
    return nbytes <= AUTO_SAVE_BYTES and kept * nbytes <= free
