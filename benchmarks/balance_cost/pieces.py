"""What single pieces of the gauges and of the controller cost, in microseconds of CPU time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tianji.balance.set_point import SetPoint
from tianji.buffer.window import RatioWindow, WindowPlan
from tianji.channels.gauges import Gauge, Gauges, timed_tick
from tianji.channels.orders import BufferRows
from tianji.config.plan import RunPlan
from tianji.engines.supervise.imbalance import LOOK_PERIOD_NS, Imbalances
from tianji.types import RoleKind, Stamp

CALLS = 20_000


class Lanes:
    """A receiver that grants at no cost; the rest of the protocol is not called."""

    arrays: dict[str, Any] = {}

    def __init__(self, num_lanes: int) -> None:
        self.num_lanes = num_lanes

    def grant(self, lane: int, round_number: int, count: int = 1) -> int:
        return count

    def is_attached(self, lane: int) -> bool:
        return True

    def expect(self, count: int) -> None:
        """Nobody sleeps."""


class Nothing:
    """A role without work."""

    def tick(self) -> bool:
        return True


def each_us(call: Callable[[], object], calls: int = CALLS) -> float:
    """Less what the loop itself and an empty call take."""
    return (_loop_s(call, calls) - _loop_s(_nothing, calls)) / calls * 1e6


def _nothing() -> None:
    """An empty call."""


def _loop_s(call: Callable[[], object], calls: int) -> float:
    before_s = time.process_time()
    for _ in range(calls):
        call()
    return time.process_time() - before_s


def unit_costs() -> dict[str, float]:
    """Of what hot loops do with gauges."""
    row = Gauges({"role": "actor"}).rows["role"]

    def add() -> None:
        row[Gauge.ENV_NS] += 1

    def read() -> None:
        row[Gauge.STEPS]

    role = Nothing()
    ticks = each_us(lambda: timed_tick(role, row)) - each_us(role.tick)
    return {
        "timed tick": ticks,
        "add": each_us(add),
        "read": each_us(read),
        "clock": each_us(time.monotonic_ns),
    }


def _gauges(plan: RunPlan) -> Gauges:
    """Rows of a run's buffer, learner and actors."""
    kinds: dict[str, RoleKind] = {"buffer": "buffer", "learner": "learner"}
    return Gauges(kinds | {f"actor-{index}": "actor" for index in range(plan.num_actors)})


def controller_us(plan: RunPlan) -> float:
    """Of one unroll, from its grant to its version, with everything the controller does."""
    point = SetPoint(plan.unrolls_per_version, plan.warmup_unrolls, plan.lag_target)
    receiver: Any = Lanes(plan.num_actors)
    window_plan = WindowPlan(point, plan.max_lag, plan.shares_cores)
    window = RatioWindow(window_plan, receiver, BufferRows.private(plan.num_actors))
    lanes, turns = window.lanes, window.lanes.turns
    window.starts_with(plan.warmup_unrolls)
    lanes.presence.changes()
    window.tick()
    versions = 0

    def version() -> None:
        nonlocal versions
        held = turns.outstanding
        for _ in range(plan.unrolls_per_version):
            lanes.presence.replaced()
            lanes.presence.changes()
            actor = held.index(max(held))
            round_number = turns.rounds[actor] - held[actor]
            turns.arrived(actor, round_number)
            window.arrived(Stamp(actor, round_number, versions, versions, 1, 0, 0), 0)
            lanes.has_changed = True
            window.tick()
        window.may_take()
        window.entering()
        versions += 1
        window.finish(versions)

    return each_us(version, CALLS // 10) / plan.unrolls_per_version


def look_us(plan: RunPlan) -> float:
    """Of the supervisor's look at the balance, once a second."""
    gauges = _gauges(plan)
    now_ns = 0

    def clock() -> int:
        return now_ns

    imbalances = Imbalances(plan, gauges, now_ns=clock)

    def look() -> None:
        nonlocal now_ns
        now_ns += LOOK_PERIOD_NS
        gauges.rows["learner"][Gauge.VERSION] += 10
        imbalances.look()

    return each_us(look, CALLS // 10)
