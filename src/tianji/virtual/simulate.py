"""Run a scenario on the virtual clock and read off its rates and lag."""

from __future__ import annotations

import time
from dataclasses import dataclass

from tianji.channels.gauges import Gauge
from tianji.config.plan import Bottleneck
from tianji.config.run import RunConfig
from tianji.virtual.cluster import Cluster
from tianji.virtual.scenario import Scenario

SETTLING_SHARE = 0.2
"""Of all versions, the first ones are not counted: the actors start together, which they will not
do again."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """Rates in environment steps per second, of all groups together, in the steady state."""

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
    """Produced and not yet received, at the end."""
    discarded: int
    slowdown: float = 1.0
    """How much longer everything took than the sum of its parts, by the rehearsals."""


@dataclass(frozen=True, slots=True)
class _Count:
    """What has happened up to one moment."""

    at_s: float
    produced: int
    received: int
    trained: int
    unrolls: int
    lag_sum: int
    lag_count: int
    actors_busy_s: float
    learner_busy_s: float
    receiving_s: float
    links_busy_s: float
    cores_used_s: float


def simulate(scenario: Scenario, config: RunConfig) -> Simulated:
    """The same numbers for the same scenario, always; config only gives the buffer its limits."""
    started = time.perf_counter()
    cluster = Cluster(scenario, config)
    cluster.start()
    settled = max(1, round(SETTLING_SHARE * scenario.num_versions))
    _run_to(cluster, settled)
    first = _count(cluster, scenario)
    _run_to(cluster, scenario.num_versions)
    last = _count(cluster, scenario)
    return _between(first, last, scenario, cluster, time.perf_counter() - started)


def _run_to(cluster: Cluster, version: int) -> None:
    while cluster.learner.version < version:
        if not cluster.clock.step():
            raise AssertionError("no role has anything to do: the balance is wrong")


def _count(cluster: Cluster, scenario: Scenario) -> _Count:
    gauges, network = cluster.gauges.rows, cluster.network
    actors = [row for name, row in gauges.items() if name.startswith("actor-")]
    histogram = cluster.buffer.lag.histogram
    links = (*network.out, *network.into)
    nodes = (*cluster.actors[: scenario.actors_per_node], cluster.learner_worker)
    return _Count(
        at_s=cluster.clock.elapsed_s(),
        produced=sum(row[Gauge.STEPS] for row in actors),
        received=gauges["buffer"][Gauge.RECEIVED_STEPS],
        trained=cluster.learner.version * scenario.trained_steps_per_version,
        unrolls=gauges["buffer"][Gauge.ITEMS],
        lag_sum=sum(lag * count for lag, count in enumerate(histogram)),
        lag_count=sum(histogram),
        actors_busy_s=sum(worker.busy_ns for worker in cluster.actors) / 1e9,
        learner_busy_s=cluster.learner_worker.busy_ns / 1e9,
        receiving_s=gauges["buffer"][Gauge.BUSY_NS] / 1e9,
        links_busy_s=max(link.busy_ns for link in links) / 1e9,
        cores_used_s=sum(worker.cores_ns for worker in nodes) / 1e9,
    )


def _between(
    first: _Count, last: _Count, scenario: Scenario, cluster: Cluster, wall_s: float
) -> Simulated:
    span_s = last.at_s - first.at_s
    lag_count = last.lag_count - first.lag_count
    shares = {
        "actors": (last.actors_busy_s - first.actors_busy_s) / span_s / len(scenario.paces),
        "learner": (last.learner_busy_s - first.learner_busy_s) / span_s,
        "receiving": (last.receiving_s - first.receiving_s) / span_s,
        "network": (last.links_busy_s - first.links_busy_s) / span_s,
        "cores": (last.cores_used_s - first.cores_used_s) / span_s / scenario.cores_per_node,
    }
    groups = scenario.num_groups
    return Simulated(
        produced=groups * (last.produced - first.produced) / span_s,
        received=groups * (last.received - first.received) / span_s,
        trained=groups * (last.trained - first.trained) / span_s,
        lag_versions=(last.lag_sum - first.lag_sum) / max(1, lag_count),
        bottleneck=bottleneck(shares),
        busy_share={name: round(share, 4) for name, share in shares.items()},
        versions=cluster.learner.version,
        virtual_s=last.at_s,
        wall_s=wall_s,
        in_flight_steps=last.produced - last.received,
        discarded=cluster.buffer.discarded,
    )


def bottleneck(shares: dict[str, float]) -> Bottleneck:
    """Whoever is busiest. A learner that mostly receives is held up by communication."""
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
