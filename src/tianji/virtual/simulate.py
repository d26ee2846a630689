"""Run a scenario on the virtual clock and read off its rates and lag."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tianji.balance.set_point import SetPoint
from tianji.buffer.stores.queue import Queue
from tianji.buffer.window import RatioWindow, WindowPlan
from tianji.channels.gauges import Gauge
from tianji.config.plan import Bottleneck
from tianji.virtual.clock import VirtualClock
from tianji.virtual.cluster import Machines
from tianji.virtual.costs import LearnerParts
from tianji.virtual.groups.combining import ALONE, Combining, Together
from tianji.virtual.groups.meeting import Agreement, Meeting
from tianji.virtual.node import IDLE_NS, Host, Node
from tianji.virtual.roles import Pace, SimulatedUnrolls
from tianji.virtual.simulated_group import CountingUpdate, SimulatedGroup

SLICE_S = 1e-3
MOST_SLICES = 16
FEW_SLICES = 4


@dataclass(frozen=True, slots=True)
class Scenario:
    """A learner and its actors; perhaps several equal groups of them.

    paces: the pace of every actor of one group, machine after machine.
    num_groups: groups in all; those of other machines are like the ones that are simulated.
    groups_per_node: groups on one machine, where a group is not larger than a machine.
    shares_cores: these groups share all cores of `machines`; else each has so many of its own.
    together: what the groups exchange; None for one group.
    combining: what that costs each of them.
    updates_per_tick: updates that are simulated as one.
    """

    paces: tuple[Pace, ...]
    learner: LearnerParts
    point: SetPoint
    max_lag: int
    trained_steps_per_version: int
    num_versions: int
    machines: Machines
    num_groups: int = 1
    groups_per_node: int = 1
    shares_cores: bool = False
    together: Together | None = None
    combining: Combining = ALONE
    updates_per_tick: float = 1.0

    @property
    def num_hosts(self) -> int:
        """Return the hosts of all groups."""
        return self.machines.num_nodes * self.learner_hosts

    @property
    def learner_hosts(self) -> int:
        """Return the hosts with learners; a group that is larger has others for actors alone."""
        return -(-self.num_groups // self.groups_per_node)

    @property
    def cores_per_host(self) -> int:
        """Return the cores of a machine that its groups have together."""
        each = self.machines.cores_per_node
        return each if self.shares_cores else each * self.groups_per_node

    @property
    def is_crowded(self) -> bool:
        """Return whether a group has more threads than cores on the learner's machine."""
        cores = self.machines.cores_per_node
        if self.shares_cores:
            cores //= self.groups_per_node
        return self.actors_per_node + self.learner.cores > cores

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

    busy_share: of the time of each part; `combining` is the time in which a learner waits for those
        of other groups.
    idle_share: the time in which actors wait, and in which learners wait for a batch.
    bytes_per_s: between hosts, of all groups, by kind.
    mix_period_s: time between two mixes with new parameters of other groups; None without mixes.
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
    idle_share: dict[str, float]
    bytes_per_s: dict[str, float]
    mix_period_s: float | None = None
    slowdown: float = 1.0


def simulate(scenario: Scenario) -> Simulated:
    """Return the rates of a scenario: always the same numbers for the same scenario."""
    started = time.perf_counter()
    groups = start_groups(scenario)
    _run_to(groups, max(1, round(SETTLING_SHARE * scenario.num_versions)))
    first = _totals(groups, scenario)
    _run_to(groups, scenario.num_versions)
    last = _totals(groups, scenario)
    grown = {name: last[name] - first[name] for name in last}
    span_s, count = grown["at_s"], len(groups)
    updates_per_s = grown["versions"] * scenario.learner.num_updates / span_s / count
    shares = {
        "actors": grown["actors_busy_s"] / span_s / count / len(scenario.paces),
        "learner": grown["learner_busy_s"] / span_s / count,
        "receiving": grown["receiving_s"] / span_s / count,
        "combining": grown["combining_s"] / span_s / count,
        "network": grown["links_busy_s"] / span_s,
        "cores": grown["cores_used_s"] / span_s / scenario.cores_per_host,
    }
    between = {kind: grown[kind] / span_s for kind in KINDS}
    mix_period_s = None
    limit = bottleneck(shares)  # mixing makes links busy, and makes nobody wait
    if (together := scenario.together) is not None:
        updates_per_s *= scenario.updates_per_tick
        shares["network"] += together.link_share(updates_per_s)
        between |= together.bytes_per_s(updates_per_s, scenario.learner_hosts)
        if not scenario.combining.has_meetings:
            mix_period_s = together.mix_period_s(updates_per_s)
    scale = scenario.num_groups / count
    return Simulated(
        produced=scale * grown["produced"] / span_s,
        received=scale * grown["received"] / span_s,
        trained=scale * grown["trained"] / span_s,
        lag_versions=grown["lag_sum"] / max(1, grown["lag_count"]),
        bottleneck=limit,
        busy_share={name: round(share, 4) for name, share in shares.items()},
        versions=min(group.learner.version for group in groups),
        virtual_s=last["at_s"],
        wall_s=time.perf_counter() - started,
        in_flight_steps=round(last["produced"] - last["received"]),
        discarded=sum(group.buffer.discarded for group in groups),
        idle_share={
            "actors": round(max(0.0, 1 - shares["actors"]), 4),
            "learner": round(max(0.0, 1 - shares["learner"] - shares["combining"]), 4),
        },
        bytes_per_s={
            kind: scale * rate if kind in KINDS else rate for kind, rate in between.items()
        },
        mix_period_s=mix_period_s,
    )


def start_groups(scenario: Scenario) -> list[SimulatedGroup]:
    """Start the groups of one machine, or one group that is larger than that."""
    clock, machines = VirtualClock(), scenario.machines
    host, meeting = Host(scenario.cores_per_host), Meeting(clock, scenario.groups_per_node)
    shared = [Node(host.num_cores)] if scenario.shares_cores else None
    groups = []
    for _ in range(scenario.groups_per_node):
        nodes = shared
        if nodes is None and machines.num_nodes == 1:
            nodes = [Node(machines.cores_per_node, host)]
        group = SimulatedGroup(len(scenario.paces), scenario.num_slots, machines, clock, nodes)
        _start(group, scenario, meeting)
        groups.append(group)
    return groups


def _start(group: SimulatedGroup, scenario: Scenario, meeting: Meeting) -> None:
    machines, parts, combining = scenario.machines, scenario.learner, scenario.combining
    for index, pace in enumerate(scenario.paces):
        actor = SimulatedUnrolls(pace, group.actor_end(index))
        group.cluster.add_actor(actor, max(1.0, pace.unroll.cores))
    may_park = machines.num_nodes == 1 and scenario.is_crowded
    plan = WindowPlan(scenario.point, scenario.max_lag, may_park=may_park)
    window = RatioWindow(plan, group.stream, group.rows, group.clock.now_ns)
    update = CountingUpdate(parts.num_updates, scenario.trained_steps_per_version)
    agreement = None
    if combining.has_meetings:
        waits_s = combining.update_wait_s * scenario.updates_per_tick
        agreement = Agreement(meeting.member(), combining.version_wait_s, waits_s)
    # A queue without fields stands for a replay store too: its samples cost memory, but no time.
    store = Queue(group.stream, {})
    group.start(window, store, parts, update, IDLE_NS, agreement=agreement)


def _run_to(groups: Sequence[SimulatedGroup], version: int) -> None:
    """Run all groups, which have one clock."""
    for group in groups:
        group.run_to(version)


KINDS = ("items", "policies")
"""What crosses between the machines of one group."""


def _totals(groups: Sequence[SimulatedGroup], scenario: Scenario) -> dict[str, float]:
    """Return what has been counted since the start, over all groups that are simulated."""
    found: Counter[str] = Counter()
    for group in groups:
        found.update(_counts(group, scenario))
    links = [
        link
        for group in groups
        for link in (*group.cluster.network.out, *group.cluster.network.into)
    ]
    return {
        **found,
        "at_s": groups[0].clock.elapsed_s(),
        "links_busy_s": max(link.busy_ns for link in links) / 1e9,
    }


def _counts(group: SimulatedGroup, scenario: Scenario) -> dict[str, float]:
    buffer, cluster = group.rows.gauges, group.cluster
    histogram = group.buffer.lag.histogram
    nodes = (*cluster.actors[: scenario.actors_per_node], cluster.learner)
    return {
        "produced": sum(actor.gauges[Gauge.STEPS] for actor in group.rows.actors),
        "received": buffer[Gauge.RECEIVED_STEPS],
        "trained": group.learner.version * scenario.trained_steps_per_version,
        "versions": group.learner.version,
        "lag_sum": sum(lag * count for lag, count in enumerate(histogram)),
        "lag_count": sum(histogram),
        "actors_busy_s": sum(worker.busy_ns for worker in cluster.actors) / 1e9,
        "learner_busy_s": cluster.learner.busy_ns / 1e9,
        "receiving_s": buffer[Gauge.BUSY_NS] / 1e9,
        "combining_s": group.waited_s,
        "cores_used_s": sum(worker.cores_ns for worker in nodes) / 1e9,
        **{kind: cluster.network.sent_bytes[kind] for kind in KINDS},
    }


def bottleneck(shares: dict[str, float]) -> Bottleneck:
    """Return the busiest part; a learner that mostly receives, or waits for those of other groups,
    is limited by communication."""
    waits = shares["combining"]
    busy = shares["learner"] + waits
    learner: Bottleneck = (
        "communication" if 2 * (shares["receiving"] + waits) >= busy else "training"
    )
    found: dict[Bottleneck, float] = {
        "sampling": shares["actors"],
        learner: busy,
        "processors": shares["cores"],
    }
    found["communication"] = max(found.get("communication", 0.0), shares["network"])
    order: tuple[Bottleneck, ...] = ("sampling", "training", "communication", "processors")
    return max(order, key=lambda name: found.get(name, 0.0))
