"""The slots and the replay memory that a run needs for a number of actors.

For a run that was not measured, the memory of its processes is estimated here too; the sizes of
what they share are exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from tianji.algorithms.interface import (
    Cadence,
    Gather,
    LearnerSize,
    QueueCadence,
    ReplayCadence,
)
from tianji.algorithms.registry import load_algorithm
from tianji.balance.lead import lead_unrolls
from tianji.balance.set_point import SetPoint
from tianji.buffer.free_running import SPARE_SLOTS_PER_ACTOR
from tianji.buffer.stores.ring_layout import AUTO_SAVE_BYTES, RingLayout, own_layout
from tianji.channels.board import NUM_COPIES
from tianji.channels.layout import GRADIENTS_FIELD, PLACE_FIELD, STANDARD_FIELDS, Layout
from tianji.channels.memory import to_pages
from tianji.channels.orders import control_bytes
from tianji.channels.shm import lane_bytes
from tianji.config.plan import Inference, LimiterPlan
from tianji.config.run import RunConfig
from tianji.envs.build import Probe
from tianji.envs.spaces import observation_fields
from tianji.errors import UsageError
from tianji.planning.resolve.limiter import limiter_slots, plan_limiter, unrolls_ahead
from tianji.planning.resolve.places import fits_gpu_replay
from tianji.planning.solve.demand import SUPERVISOR_BYTES, RunMemory, SharedBytes
from tianji.programs.program import FEEDBACK_SLOTS
from tianji.types import Field
from tianji.wording import counted

if TYPE_CHECKING:
    from tianji.envs.build import Probe

# The slot of a gradient is free again once it is counted: an actor works on one, has one at hand,
# and two may be on their way.
SLOTS_PER_GRADIENT_ACTOR = 4
QUEUED_BATCHES = 2  # in a queue of fixed size: one that waits, and one in work
# Actors that nobody paces must not wait while the learner's process makes an update or saves a
# checkpoint, in which time it receives nothing.
MOST_FREE_SLOTS, FEWEST_FREE_SLOTS = 64, 4  # of one actor
FREE_SLOTS_BYTES = 64 << 20  # of all actors together, if those are more than the fewest


@dataclass(frozen=True)
class Run:
    """A run before its shares of the machine are known. num_parameters: of the network that it
    publishes, at most.
    device: where the learner trains. keeps_replay_on_host: a replay store that may be on the GPU
    is in main memory."""

    config: RunConfig
    probe: Probe
    num_parameters: int = 0
    device: str = "cpu"
    keeps_replay_on_host: bool = False

    @cached_property
    def cadence(self) -> Cadence:
        return load_algorithm(self.config.algorithm.name).cadence(self.config)

    @cached_property
    def learner_size(self) -> LearnerSize:
        algorithm = load_algorithm(self.config.algorithm.name)
        return algorithm.learner_size(self.probe.spaces, self.config)

    @property
    def trained_bytes(self) -> int:
        """Return what a learner takes for the parameters that it trains, of all its networks."""
        num_parameters = self.num_parameters + self.learner_size.num_parameters
        return TRAINING_COPIES * FLOAT_BYTES * num_parameters


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
    lag_target: int
    """Lag of an unroll in the steady state, in versions; 0 where gradients are gathered."""
    queue_size: int = 0
    """Unrolls in a queue of fixed size, where the balance is one."""
    limiter: LimiterPlan | None = None
    """The rate limiter, where the balance is one."""


def _paced_lag(config: RunConfig) -> int:
    """Return the lag that pacing maintains: overlapping takes one version."""
    if config.lag_target == "auto":
        return min(1, config.max_lag)
    if config.lag_target > config.max_lag:
        raise UsageError(
            f"lag_target is {config.lag_target} and max_lag is {config.max_lag}: experience older "
            f"than max_lag is given up. Use --max-lag {config.lag_target} or more."
        )
    return config.lag_target


def plan_slots(run: Run, num_actors: int) -> Slots:
    """Return the slots; raise UsageError if a version is no multiple of an unroll."""
    config, probe, cadence = run.config, run.probe, run.cadence
    fields = (
        *observation_fields(probe.spaces.observation, probe.keeps_final),
        *probe.more_fields,
        *load_algorithm(config.algorithm.name).fields(probe.spaces, config),
        *STANDARD_FIELDS,
        *_item_fields(cadence),
    )
    num_rows = cadence.unroll_length + cadence.lookahead - 1
    layout = Layout(fields, num_rows, config.num_envs // num_actors)
    steps_per_unroll = cadence.unroll_length * layout.num_envs
    warmup = math.ceil(cadence.warmup_steps / steps_per_unroll)
    stored = queue_size = lag = 0
    replay: RingLayout | None = None
    limiter: LimiterPlan | None = None
    if isinstance(cadence, Gather):
        per_version = num_actors if cadence.rule == "barrier" else cadence.num_gradients
        num_slots = num_actors * SLOTS_PER_GRADIENT_ACTOR
    else:
        per_version = _unrolls_per_version(cadence, steps_per_unroll)
        lag = _paced_lag(config)
        match cadence:
            case ReplayCadence():
                capacity = math.ceil(cadence.capacity_steps / config.num_envs)
                replay = RingLayout(layout, num_actors, capacity, cadence.lookahead)
                if _is_on_gpu(run, cadence, replay):
                    replay = replace(replay, has_observations=False)
            case QueueCadence():
                stored = (cadence.pool_batches - 1) * per_version
        at_actors = num_actors * _free_slots(layout.slot_bytes, num_actors)
        match config.balance:
            case "paced":
                in_flight = per_version * (lag + 2)
            case "free":
                in_flight = at_actors
            case "blocking" | "dropping":
                queue_size = _queue_size(config, per_version)
                in_flight = queue_size + per_version
                in_flight += at_actors if config.balance == "dropping" else 0
                lag *= queue_size // per_version  # of an unroll that goes through a full queue
            case "limiter":
                limiter = plan_limiter(
                    config.limiter, cadence, steps_per_unroll, per_version, warmup
                )
                in_flight = limiter_slots(limiter, num_actors)
                lag *= -(-unrolls_ahead(limiter, num_actors) // per_version)  # if all are full
        num_slots = stored + in_flight + num_actors * SPARE_SLOTS_PER_ACTOR
    # Beside the actors: buffer and learner in one worker, and perhaps an evaluator.
    control = to_pages(control_bytes(num_actors + 3, num_actors + 2))
    shared = SharedBytes(
        in_flight=to_pages(layout.slot_bytes * num_slots),
        replay=0 if replay is None else to_pages(replay.nbytes),
        control=to_pages(lane_bytes(num_slots) * num_actors) + control,
    )
    slots = Slots(layout, per_version, warmup, replay, num_slots, shared, lag, queue_size, limiter)
    if config.has_processes and config.plan.buffer_worker == "buffer":
        return replace(slots, shared=replace(shared, messages=_message_bytes(run, slots)))
    return slots


def lead_note(slots: Slots, config: RunConfig) -> str | None:
    """Return what is stored ahead while production is uneven; None if nothing is."""
    if slots.replay is None or config.balance != "paced":
        return None
    point = SetPoint(slots.per_version, slots.warmup_unrolls, slots.lag_target)
    count = lead_unrolls(point, config.max_lag)
    if not count:
        return None
    return (
        f"While production is uneven, actors store up to {counted(count, 'unroll')} ahead in the "
        "replay store."
    )


def _item_fields(cadence: Cadence) -> tuple[Field, ...]:
    """Return the fields that depend on what an item is and on whether episodes go on in it."""
    if not isinstance(cadence, Gather):
        return (PLACE_FIELD,)
    place = () if cadence.fresh else (PLACE_FIELD,)
    return place if cadence.memory is None else (*place, GRADIENTS_FIELD)


def _queue_size(config: RunConfig, per_version: int) -> int:
    """Return the unrolls in the queue; raise UsageError if a batch does not fit in it."""
    if config.queue_size == "auto":
        return QUEUED_BATCHES * per_version
    if config.queue_size < per_version:
        raise UsageError(
            f"queue_size is {config.queue_size}, and one batch takes {per_version} unrolls: the "
            f"learner would wait forever. Use --queue-size {per_version} or more."
        )
    return config.queue_size


def _free_slots(slot_bytes: int, num_actors: int) -> int:
    """Return the slots of each actor where nobody paces it."""
    affordable = FREE_SLOTS_BYTES // (slot_bytes * num_actors)
    return max(FEWEST_FREE_SLOTS, min(MOST_FREE_SLOTS, affordable))


def _is_on_gpu(run: Run, cadence: ReplayCadence, replay: RingLayout) -> bool:
    if cadence.memory != "auto":
        return cadence.memory == "gpu"
    if run.keeps_replay_on_host:
        return False
    return fits_gpu_replay(run.config, run.device, replay.observation_bytes)


def _unrolls_per_version(cadence: Cadence, steps_per_unroll: int) -> int:
    if cadence.steps_per_version % steps_per_unroll:
        raise UsageError(
            f"A version takes {cadence.steps_per_version} steps, which is not a multiple of the "
            f"{steps_per_unroll} steps of one unroll (unroll length {cadence.unroll_length} x "
            f"{steps_per_unroll // cadence.unroll_length} environments of an actor)."
        )
    return cadence.steps_per_version // steps_per_unroll


def _message_bytes(run: Run, slots: Slots) -> int:
    """Return what the slots of messages grow to: one batch, the priorities of its items, and the
    state of the store in both directions, which holds the items where checkpoints do."""
    cadence, checkpoint = run.cadence, run.config.checkpoint
    state = STATE_BYTES
    if slots.replay is not None:
        nbytes = replace(slots.replay, has_observations=True).nbytes
        is_small = nbytes <= AUTO_SAVE_BYTES
        is_saved = is_small if checkpoint.replay == "auto" else checkpoint.replay
        state += nbytes if is_saved or checkpoint.save_replay else 0
    priorities = FEEDBACK_SLOTS * FLOAT_BYTES * cadence.trained_steps_per_version
    return to_pages(_batch_bytes(cadence, slots)) + to_pages(priorities) + 2 * to_pages(state)


STATE_BYTES = 1 << 20  # of a buffer without items: counts, histograms, random states
WORKER_BYTES = 170 << 20  # a process with torch: 172 MiB with 4 actors, 156 MiB of it written to
FLOAT_BYTES = 4
ACTING_COPIES = 2  # of the parameters in an actor: its network, and the policy as read
TRAINING_COPIES = 6  # in the learner: parameters, gradients, two of Adam, a target, a checkpoint
TRACE_BYTES = 8  # per step and epoch: what PPO keeps for its metrics until a version is done


@dataclass(frozen=True, slots=True)
class Processes:
    """The processes that step environments and choose actions, beside the learner's."""

    actors: int
    servers: int


def count_processes(
    inference: Inference, device: str, num_actors: int, actors_per_worker: int
) -> Processes:
    """Count them for a run of the local engine, as `programs/program.py` shares out the roles."""
    return Processes(
        actors=0 if inference == "learner" else -(-num_actors // actors_per_worker),
        servers=int(inference == "served" and device == "cpu"),
    )


def estimated_memory(run: Run, num_actors: int, processes: Processes) -> RunMemory:
    config, probe, cadence = run.config, run.probe, run.cadence
    slots = plan_slots(run, num_actors)
    is_local = config.has_processes  # in the other engines one process holds all roles
    policy = FLOAT_BYTES * run.num_parameters
    boards = 1 + (num_actors if isinstance(cadence, Gather) else 0)
    more_envs = config.num_envs // num_actors - 1
    environments = probe.env_bytes + more_envs * probe.more_env_bytes
    own = cadence.memory if isinstance(cadence, Gather) else None
    replay = 0 if own is None else own_layout(slots.layout, own, num_actors).nbytes
    worker = is_local * WORKER_BYTES
    network = ACTING_COPIES * policy
    server = processes.servers * (worker + network)
    return RunMemory(
        num_actors=num_actors,
        actors=num_actors * (network + environments + replay) + processes.actors * worker + server,
        learner=WORKER_BYTES + run.trained_bytes + _batch_bytes(cadence, slots),
        policy=boards * NUM_COPIES * policy,
        shared=slots.shared,
        evaluator=network + environments + worker if config.evaluate.period_s > 0 else 0,
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
