"""The memory of a run that was not measured: estimates of its processes, and the exact sizes of
what they share."""

from __future__ import annotations

from tianji.algorithms.interface import Cadence, Gather, QueueCadence
from tianji.channels.board import NUM_COPIES
from tianji.config.run import RunConfig
from tianji.envs.build import Probe
from tianji.planning.resolve.slots import Slots
from tianji.planning.solve.run_memory import SUPERVISOR_BYTES, RunMemory

WORKER_BYTES = 170 << 20  # a process with torch: 172 MiB with 4 actors, 156 MiB of it written to
FLOAT_BYTES = 4
ACTING_COPIES = 2  # of the parameters in an actor: its network, and the policy as read
TRAINING_COPIES = 6  # in the learner: parameters, gradients, two of Adam, a target, a checkpoint
TRACE_BYTES = 8  # per step and epoch: what PPO keeps for its metrics until a version is done


def estimated_memory(
    config: RunConfig,
    probe: Probe,
    cadence: Cadence,
    slots: Slots,
    num_actors: int,
    num_parameters: int,
) -> RunMemory:
    is_local = config.engine == "local"  # in the other engines one process holds all roles
    policy = FLOAT_BYTES * num_parameters
    boards = 1 + (num_actors if isinstance(cadence, Gather) else 0)
    more_envs = config.num_envs // num_actors - 1
    environments = probe.env_bytes + more_envs * probe.more_env_bytes
    actor = ACTING_COPIES * policy + environments + is_local * WORKER_BYTES
    return RunMemory(
        num_actors=num_actors,
        actors=num_actors * actor,
        learner=WORKER_BYTES + TRAINING_COPIES * policy + _batch_bytes(cadence, slots),
        policy=boards * NUM_COPIES * policy,
        shared=slots.shared,
        evaluator=actor if config.evaluate.period_s > 0 else 0,
        supervisor=is_local * SUPERVISOR_BYTES,
    )


def _batch_bytes(cadence: Cadence, slots: Slots) -> int:
    """Return the learner's copy of a batch; gradients are added up where they lie."""
    if isinstance(cadence, Gather):
        return 0
    if isinstance(cadence, QueueCadence):
        trace = TRACE_BYTES * cadence.trained_steps_per_version
        return slots.per_version * slots.layout.slot_bytes + trace
    assert slots.replay is not None, "this cadence has a replay store"
    return cadence.trained_steps_per_version * slots.replay.item_bytes
