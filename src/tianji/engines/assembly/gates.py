"""Builds the gate that a run's balance asks for: one function for each kind of store."""

from __future__ import annotations

from tianji.algorithms.interface import QueueCadence
from tianji.balance.samples_per_insert import limits_of
from tianji.balance.set_point import SetPoint
from tianji.buffer.bounded import BlockingQueue, DroppingQueue, QueuePlan
from tianji.buffer.free_running import SPARE_SLOTS_PER_ACTOR, FreePlan, FreeRunning
from tianji.buffer.interface import Gate
from tianji.buffer.rate_limited import QueueTable, RateLimited, RateLimitedPlan, ReplayTable
from tianji.buffer.window import RatioWindow, WindowPlan
from tianji.channels.interface import Receiver
from tianji.channels.orders import BufferRows
from tianji.config.plan import RunPlan
from tianji.engines.spec import RunSpec
from tianji.types import Clock


def build_queue_gate(
    spec: RunSpec, cadence: QueueCadence, receiver: Receiver, rows: BufferRows, now_ns: Clock
) -> Gate:
    """Build the gate of a store whose items are used once."""
    plan = spec.plan
    match plan.balance:
        case "paced":
            return RatioWindow(_window_plan(plan), receiver, rows, now_ns)
        case "blocking":
            queue = QueuePlan(plan.unrolls_per_version, plan.queue_size)
            return BlockingQueue(queue, receiver, rows)
        case "dropping":
            in_use = plan.queue_size + cadence.pool_batches * plan.unrolls_per_version
            slots = slots_per_actor(plan, in_use)
            queue = QueuePlan(plan.unrolls_per_version, plan.queue_size, slots)
            return DroppingQueue(queue, receiver, rows)
        case "limiter":
            return RateLimited(_limited_plan(plan), QueueTable(), receiver, rows, now_ns)
        case other:
            raise AssertionError(f"check_balance() refuses '{other}' without a replay store")


def build_replay_gate(spec: RunSpec, receiver: Receiver, rows: BufferRows, now_ns: Clock) -> Gate:
    """Build the gate of a replay store."""
    plan = spec.plan
    match plan.balance:
        case "paced":
            return RatioWindow(_window_plan(plan), receiver, rows, now_ns)
        case "free":
            first_unrolls = plan.warmup_unrolls + plan.unrolls_per_version
            free = FreePlan(first_unrolls, slots_per_actor(plan, in_use=0))
            return FreeRunning(free, receiver, rows)
        case "limiter":
            table = ReplayTable(plan.num_actors, plan.replay_rows * plan.envs_per_actor)
            return RateLimited(_limited_plan(plan), table, receiver, rows, now_ns)
        case other:
            raise AssertionError(f"check_balance() refuses '{other}' with a replay store")


def _limited_plan(plan: RunPlan) -> RateLimitedPlan:
    found = plan.limiter
    assert found is not None, "a plan with this balance has a limiter"
    return RateLimitedPlan(limits_of(found), found.items_per_batch, found.items_per_unroll)


def slots_per_actor(plan: RunPlan, in_use: int) -> int:
    """Return the slots that each actor holds if nobody paces it. in_use: slots that are neither in
    work nor on their way."""
    return (plan.num_slots - in_use) // plan.num_actors - SPARE_SLOTS_PER_ACTOR


def _window_plan(plan: RunPlan) -> WindowPlan:
    point = SetPoint(plan.unrolls_per_version, plan.warmup_unrolls, plan.lag_target)
    return WindowPlan(
        point,
        plan.max_lag,
        may_park=plan.shares_cores,
        stores_copies=plan.replay_rows > 0,
    )
