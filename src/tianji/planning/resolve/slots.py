"""The slots and the replay memory that a run needs for a number of actors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tianji.algorithms.interface import Algorithm, Cadence, Gather, QueueCadence, ReplayCadence
from tianji.buffer.stores.ring_layout import RingLayout
from tianji.channels.layout import PLACE_FIELD, STANDARD_FIELDS, Layout
from tianji.channels.memory import to_pages
from tianji.channels.orders import control_bytes
from tianji.channels.shm import lane_bytes
from tianji.config.run import RunConfig
from tianji.envs.spaces import observation_fields
from tianji.errors import UsageError
from tianji.planning.solve.run_memory import SharedBytes

if TYPE_CHECKING:
    from tianji.envs.build import Probe

# The slot of a gradient is free again once it is counted: an actor works on one, has one at hand,
# and two may be on their way.
SLOTS_PER_GRADIENT_ACTOR = 4
SPARE_SLOTS_PER_ACTOR = 1  # one may be out of use while a replaced actor attaches


@dataclass(frozen=True, slots=True)
class Slots:
    """The slots of one run.

    per_version: unrolls that one version takes.
    replay: the memory of a replay store; None where there is none.
    """

    layout: Layout
    per_version: int
    warmup_unrolls: int
    replay: RingLayout | None
    num_slots: int
    shared: SharedBytes


def lag_target(config: RunConfig) -> int:
    """Return the lag of an unroll in the steady state: overlapping takes one version."""
    return min(1, config.max_lag)


def plan_slots(
    config: RunConfig, algorithm: Algorithm, cadence: Cadence, probe: Probe, num_actors: int
) -> Slots:
    """Return the slots; raise UsageError if a version is no multiple of an unroll."""
    fields = (
        *observation_fields(probe.spaces.observation, probe.keeps_final),
        *probe.more_fields,
        *algorithm.fields(probe.spaces, config),
        *STANDARD_FIELDS,
        *((PLACE_FIELD,) if isinstance(cadence, ReplayCadence) else ()),
    )
    num_rows = cadence.unroll_length + cadence.lookahead - 1
    layout = Layout(fields, num_rows, config.num_envs // num_actors)
    steps_per_unroll = cadence.unroll_length * layout.num_envs
    warmup = stored = 0
    replay: RingLayout | None = None
    if isinstance(cadence, Gather):
        per_version = num_actors if cadence.rule == "barrier" else cadence.num_gradients
        num_slots = num_actors * SLOTS_PER_GRADIENT_ACTOR
    else:
        per_version = _unrolls_per_version(cadence, steps_per_unroll)
        warmup = math.ceil(cadence.warmup_steps / steps_per_unroll)
        match cadence:
            case ReplayCadence():
                capacity = math.ceil(cadence.capacity_steps / config.num_envs)
                replay = RingLayout(layout, num_actors, capacity, cadence.lookahead)
                stored = warmup  # unrolls enter the store when the first version is due
            case QueueCadence():
                stored = (cadence.pool_batches - 1) * per_version
        in_flight = per_version * (lag_target(config) + 2) + num_actors * SPARE_SLOTS_PER_ACTOR
        num_slots = stored + in_flight
    # Beside the actors: buffer and learner in one worker, and perhaps an evaluator.
    control = to_pages(control_bytes(num_actors + 3, num_actors + 2))
    shared = SharedBytes(
        in_flight=to_pages(layout.slot_bytes * num_slots),
        replay=0 if replay is None else to_pages(replay.nbytes),
        control=to_pages(lane_bytes(num_slots) * num_actors) + control,
    )
    return Slots(layout, per_version, warmup, replay, num_slots, shared)


def _unrolls_per_version(cadence: Cadence, steps_per_unroll: int) -> int:
    if cadence.steps_per_version % steps_per_unroll:
        raise UsageError(
            f"A version takes {cadence.steps_per_version} steps, which is not a multiple of the "
            f"{steps_per_unroll} steps of one unroll (unroll length {cadence.unroll_length} x "
            f"{steps_per_unroll // cadence.unroll_length} environments of an actor)."
        )
    return cadence.steps_per_version // steps_per_unroll
