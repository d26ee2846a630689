"""How many slots of what size a run needs, for a number of actors: unrolls, rows, bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tianji.algorithms.interface import Algorithm, Cadence, Gather, QueueCadence, ReplayCadence
from tianji.balance.demand import SharedBytes
from tianji.channels.gauges import control_bytes
from tianji.channels.layout import STANDARD_FIELDS, Layout
from tianji.channels.memory import to_pages
from tianji.channels.notes import note_bytes
from tianji.channels.shm import lane_bytes
from tianji.config.run import RunConfig
from tianji.envs.spaces import observation_fields
from tianji.errors import UsageError

if TYPE_CHECKING:
    from tianji.envs.build import Probe

SLOTS_PER_GRADIENT_ACTOR = 4
SPARE_SLOTS_PER_ACTOR = 1  # one may be out of use while a replaced actor attaches


@dataclass(frozen=True, slots=True)
class Slots:
    """The slots of one run."""

    layout: Layout
    per_version: int
    """Unrolls behind one version."""
    warmup_unrolls: int
    replay_unrolls: int
    num_slots: int
    shared: SharedBytes


def lag_target(config: RunConfig) -> int:
    """Versions an unroll is behind in steady state: one is what overlapping takes."""
    return min(1, config.max_lag)


def plan_slots(
    config: RunConfig, algorithm: Algorithm, cadence: Cadence, probe: Probe, num_actors: int
) -> Slots:
    """UsageError where a version is no multiple of an unroll."""
    envs_per_actor = config.num_envs // num_actors
    fields = (
        *observation_fields(probe.spaces.observation, probe.keeps_final),
        *algorithm.fields(probe.spaces, config),
        *STANDARD_FIELDS,
    )
    layout = Layout(fields, cadence.unroll_length + cadence.lookahead - 1, envs_per_actor)
    steps_per_unroll = cadence.unroll_length * envs_per_actor
    if isinstance(cadence, Gather):
        return _token_slots(cadence, layout, num_actors)
    per_version = _unrolls_per_version(cadence, steps_per_unroll)
    warmup = math.ceil(cadence.warmup_steps / steps_per_unroll)
    replay_unrolls = pooled = 0
    match cadence:
        case ReplayCadence():
            replay_unrolls = math.ceil(cadence.capacity_steps / steps_per_unroll)
        case QueueCadence():
            pooled = (cadence.pool_batches - 1) * per_version
    stored = max(replay_unrolls, warmup) + pooled
    in_flight = per_version * (lag_target(config) + 2) + num_actors * SPARE_SLOTS_PER_ACTOR
    num_slots = stored + in_flight
    return Slots(
        layout=layout,
        per_version=per_version,
        warmup_unrolls=warmup,
        replay_unrolls=replay_unrolls,
        num_slots=num_slots,
        shared=_shared_bytes(layout.slot_bytes, stored, num_slots, num_actors),
    )


def _token_slots(gather: Gather, layout: Layout, num_actors: int) -> Slots:
    """Tokens are counted and their slots are free again: an actor has one in work, one at hand, and
    two may be on their way."""
    num_slots = num_actors * SLOTS_PER_GRADIENT_ACTOR
    return Slots(
        layout=layout,
        per_version=num_actors if gather.rule == "barrier" else gather.num_gradients,
        warmup_unrolls=0,
        replay_unrolls=0,
        num_slots=num_slots,
        shared=_shared_bytes(layout.slot_bytes, 0, num_slots, num_actors),
    )


def _shared_bytes(slot_bytes: int, stored: int, num_slots: int, num_actors: int) -> SharedBytes:
    # Beside the actors: buffer and learner in one worker, and perhaps an evaluator.
    control = to_pages(control_bytes(num_actors + 3, num_actors + 2))
    return SharedBytes(
        in_flight=to_pages(slot_bytes * num_slots) - slot_bytes * stored,
        replay=slot_bytes * stored,
        control=to_pages(lane_bytes(num_slots) * num_actors + note_bytes(num_slots)) + control,
    )


def _unrolls_per_version(cadence: Cadence, steps_per_unroll: int) -> int:
    if cadence.steps_per_version % steps_per_unroll:
        raise UsageError(
            f"A version takes {cadence.steps_per_version} steps, which is no multiple of the "
            f"{steps_per_unroll} steps of one unroll (unroll length {cadence.unroll_length} x "
            f"{steps_per_unroll // cadence.unroll_length} environments of an actor)."
        )
    return cadence.steps_per_version // steps_per_unroll
