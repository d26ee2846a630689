"""Run a scenario on the virtual clock and read off its rates and lag."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from tianji.balance.set_point import SetPoint
from tianji.buffer.stores.queue import Queue
from tianji.buffer.window import RatioWindow, WindowPlan
from tianji.channels.gauges import Gauge
from tianji.config.plan import Bottleneck
from tianji.virtual.cluster import Machines
from tianji.virtual.costs import LearnerParts
from tianji.virtual.node import IDLE_NS
from tianji.virtual.roles import Pace, SimulatedUnrolls
from tianji.virtual.simulated_group import CountingUpdate, SimulatedGroup

SLICE_S = 1e-3
MOST_SLICES = 16
FEW_SLICES = 4


@dataclass(frozen=True, slots=True)
class Scenario:
    """A learner and its actors; perhaps several equal groups of them.

    paces: the pace of every actor, machine after machine.
    num_groups: learners with actors of their own, which average their gradients in every update.
    """

    paces: tuple[Pace, ...]
    learner: LearnerParts
    point: SetPoint
    max_lag: int
    trained_steps_per_version: int
    num_versions: int
    machines: Machines
    num_groups: int = 1

    @property
    def actors_per_node(self) -> int:
        return len(self.paces) // self.machines.num_nodes

    @property
    def num_slots(self) -> int:
        point = self.point
        return (
            point.warmup_unrolls
            + point.unrolls_per_version * (point.lag_target + 2)
            + len(self.paces)
        )


def num_slices(unroll_s: float, num_rows: int, has_own_core: bool) -> int:
    """Return the ticks of one unroll: about one per millisecond where cores are shared, at most one
    per row. Actors with a core of their own need fewer, to hear that they are late."""
    most = FEW_SLICES if has_own_core else MOST_SLICES
    return max(1, min(num_rows, most, math.ceil(unroll_s / SLICE_S)))


# The share of versions at the start that is not counted, because the actors start together.
SETTLING_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class Simulated:
    """Rates in environment steps per second, of all groups together, in the steady state.

    in_flight_steps: steps that were produced and not yet received at the end.
    slowdown: how many times longer everything took than the sum of its parts, by the rehearsals.
    """

    produced: float
    received: float
    trained: float
    lag_versions: float
    bottleneck: Bottleneck
    busy_share: dict[str, float]
    versions: int
    virtual_s: float
    wall_s: float
    in_flight_steps: int
    discarded: int
    slowdown: float = 1.0


def simulate(scenario: Scenario) -> Simulated:
    """Return the rates of a scenario: always the same numbers for the same scenario."""
    started = time.perf_counter()
    group = start_group(scenario)
    group.run_to(max(1, round(SETTLING_SHARE * scenario.num_versions)))
    first = _totals(group, scenario)
    group.run_to(scenario.num_versions)
    last = _totals(group, scenario)
    grown = {name: last[name] - first[name] for name in last}
    span_s = grown["at_s"]
    shares = {
        "actors": grown["actors_busy_s"] / span_s / len(scenario.paces),
        "learner": grown["learner_busy_s"] / span_s,
        "receiving": grown["receiving_s"] / span_s,
        "network": grown["links_busy_s"] / span_s,
        "cores": grown["cores_used_s"] / span_s / scenario.machines.cores_per_node,
    }
    return Simulated(
        produced=scenario.num_groups * grown["produced"] / span_s,
        received=scenario.num_groups * grown["received"] / span_s,
        trained=scenario.num_groups * grown["trained"] / span_s,
        lag_versions=grown["lag_sum"] / max(1, grown["lag_count"]),
        bottleneck=bottleneck(shares),
        busy_share={name: round(share, 4) for name, share in shares.items()},
        versions=group.learner.version,
        virtual_s=last["at_s"],
        wall_s=time.perf_counter() - started,
        in_flight_steps=round(last["produced"] - last["received"]),
        discarded=group.buffer.discarded,
    )


def start_group(scenario: Scenario) -> SimulatedGroup:
    machines, parts = scenario.machines, scenario.learner
    group = SimulatedGroup(len(scenario.paces), scenario.num_slots, machines)
    for index, pace in enumerate(scenario.paces):
        actor = SimulatedUnrolls(pace, group.actor_end(index))
        group.cluster.add_actor(actor, max(1.0, pace.unroll.cores))
    is_crowded = scenario.actors_per_node + parts.cores > machines.cores_per_node
    may_park = machines.num_nodes == 1 and is_crowded
    plan = WindowPlan(scenario.point, scenario.max_lag, may_park=may_park)
    window = RatioWindow(plan, group.stream, group.rows, group.clock.now_ns)
    update = CountingUpdate(parts.num_updates, scenario.trained_steps_per_version)
    # A queue without fields stands for a replay store too: its samples cost memory, but no time.
    group.start(window, Queue(group.stream, {}), parts, update, IDLE_NS)
    return group


def _totals(group: SimulatedGroup, scenario: Scenario) -> dict[str, float]:
    """Return what has been counted since the start."""
    buffer, cluster = group.rows.gauges, group.cluster
    histogram = group.buffer.lag.histogram
    links = (*cluster.network.out, *cluster.network.into)
    nodes = (*cluster.actors[: scenario.actors_per_node], cluster.learner)
    return {
        "at_s": group.clock.elapsed_s(),
        "produced": sum(actor.gauges[Gauge.STEPS] for actor in group.rows.actors),
        "received": buffer[Gauge.RECEIVED_STEPS],
        "trained": group.learner.version * scenario.trained_steps_per_version,
        "lag_sum": sum(lag * count for lag, count in enumerate(histogram)),
        "lag_count": sum(histogram),
        "actors_busy_s": sum(worker.busy_ns for worker in cluster.actors) / 1e9,
        "learner_busy_s": cluster.learner.busy_ns / 1e9,
        "receiving_s": buffer[Gauge.BUSY_NS] / 1e9,
        "links_busy_s": max(link.busy_ns for link in links) / 1e9,
        "cores_used_s": sum(worker.cores_ns for worker in nodes) / 1e9,
    }


def bottleneck(shares: dict[str, float]) -> Bottleneck:
    """Return the busiest part; a learner that mostly receives is limited by communication."""
    learner: Bottleneck = (
        "communication" if 2 * shares["receiving"] >= shares["learner"] else "training"
    )
    found: dict[Bottleneck, float] = {
        "sampling": shares["actors"],
        learner: shares["learner"],
        "processors": shares["cores"],
    }
    found["communication"] = max(found.get("communication", 0.0), shares["network"])
    order: tuple[Bottleneck, ...] = ("sampling", "training", "communication", "processors")
    return max(order, key=lambda name: found.get(name, 0.0))
