"""What a run will take of memory where nothing was measured: estimates of its processes, and the
exact sizes of what they share."""

from __future__ import annotations

from tianji.algorithms.interface import Cadence, Gather, QueueCadence
from tianji.balance.memory import SUPERVISOR_BYTES, ProcessBytes, memory_parts
from tianji.channels.board import NUM_COPIES
from tianji.config.run import RunConfig
from tianji.envs.build import Probe
from tianji.programs.slots import Slots

WORKER_BYTES = 170 << 20
"""A process with torch, its own part: 172 MiB with 4 actors, 156 MiB of them written to."""
FLOAT_BYTES = 4
ACTING_COPIES = 2
"""Of the parameters in an actor: its network, and the policy as it was read."""
TRAINING_COPIES = 6
"""In the learner: parameters, gradients, two of the optimiser, a target, one being saved."""
TRACE_BYTES = 8
"""Of every step in every epoch: what PPO keeps for its metrics until a version is done."""


def estimated_memory(
    config: RunConfig,
    probe: Probe,
    cadence: Cadence,
    slots: Slots,
    num_actors: int,
    num_parameters: int,
) -> dict[str, int]:
    """Bytes by what they are for, as those of a measured plan."""
    policy = FLOAT_BYTES * num_parameters
    boards = 1 + (num_actors if isinstance(cadence, Gather) else 0)
    actor = ACTING_COPIES * policy + _environments(probe, config.num_envs // num_actors)
    learner = WORKER_BYTES + TRAINING_COPIES * policy + _batch(cadence, slots)
    has_evaluator = config.evaluate.period_s > 0
    is_alone = config.engine != "local"  # one process has all roles
    each = ProcessBytes(
        actor=actor + (0 if is_alone else WORKER_BYTES),
        learner=learner,
        policy=boards * NUM_COPIES * policy,
        evaluator=has_evaluator * (actor + (0 if is_alone else WORKER_BYTES)),
        supervisor=0 if is_alone else SUPERVISOR_BYTES,
    )
    return memory_parts(slots.shared, num_actors, each)


def _environments(probe: Probe, num_envs: int) -> int:
    """Of one actor."""
    return probe.env_bytes + (num_envs - 1) * probe.more_env_bytes


def _batch(cadence: Cadence, slots: Slots) -> int:
    """The learner's copy of what it trains on at once; gradients are added up where they lie."""
    if isinstance(cadence, Gather):
        return 0
    if isinstance(cadence, QueueCadence):
        trace = TRACE_BYTES * cadence.trained_steps_per_version
        return slots.per_version * slots.layout.slot_bytes + trace
    steps_per_unroll = cadence.unroll_length * slots.layout.num_envs
    return cadence.trained_steps_per_version * slots.layout.slot_bytes // steps_per_unroll
