"""Account: where the time of a run went, side by side. Pure; read from a record of metrics.

A run has two sides that work at the same time: the actors, and the learner's worker, which also
runs the buffer. The side that works all the time sets the pace. A server that infers for the actors
may do so too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tianji.records import Measured, Metrics, Rates, Spent, roles_of

LACK_OF_CORES = 0.05
"""A side that lacks a core for more than this share of the time has too few of them."""
LEAST_S = 0.05
"""The shortest time that is worth an account."""
UNACCOUNTED = 0.05
"""Share of its time that a role may neither work nor wait: its loop itself takes up to 3 %."""
NO_WORK = 0.01
"""Busy share of both sides below which the run has not begun to work."""


@dataclass(frozen=True, slots=True)
class Side:
    """The time of one side, as shares of the time span; the mean of its roles."""

    parts: Mapping[str, float]
    """What its work is made of, by name."""
    waits: Mapping[str, float]
    """What it waited for, by name; `core` overlaps with everything else."""
    on_core: float | None
    """Cores in use, all its processes together; None where it was not measured."""

    @property
    def worked(self) -> float:
        """The sum of the parts. It may exceed 1: gauges are not all read at the same moment."""
        return sum(self.parts.values())

    @property
    def busy(self) -> float:
        return min(1.0, self.worked)

    @property
    def missing(self) -> float:
        """The share of the time that is neither work nor a wait."""
        return 1 - self.worked - sum(share for why, share in self.waits.items() if why != "core")

    @property
    def no_core(self) -> float:
        return self.waits.get("core", 0.0)


class Absence(NamedTuple):
    """How the actors were missing, because they were started again."""

    share: float
    """Share of the time, the mean over the actors."""
    restarts: int
    env_failures: int


class Server(NamedTuple):
    """The time of a server that infers for the actors, as shares of the time span."""

    busy: float
    on_core: float
    """Cores in use."""


@dataclass(frozen=True, slots=True)
class Account:
    """Both sides over one stretch of time."""

    span_s: float
    num_actors: int
    actors: Side
    learner: Side
    rates: Rates
    usable_cores: int | None
    server: Server | None = None
    away_s: float = 0.0
    """How long no learner was there, because it was started again. Its shares are those of the
    rest."""
    absence: Absence | None = None
    """None where the actors were there all the time."""
    waited_for_others: Mapping[str, float] = field(default_factory=dict)
    """The share that each learner spent in reductions with others, by its name."""

    @property
    def lacks_cores(self) -> bool:
        return max(self.actors.no_core, self.learner.no_core) > LACK_OF_CORES

    @property
    def unused_cores(self) -> float:
        """Cores that this run may use and does not; 0 where that is not known."""
        if self.usable_cores is None or self.actors.on_core is None or self.learner.on_core is None:
            return 0.0
        served = 0.0 if self.server is None else self.server.on_core
        return max(0.0, self.usable_cores - self.actors.on_core - self.learner.on_core - served)

    @property
    def idle_cores(self) -> float:
        """Unused cores that are free; none where a side lacks a core."""
        return 0.0 if self.lacks_cores else self.unused_cores


def to_account(record: Metrics) -> Account | None:
    """Return None where too little has been done to say anything: no role has worked, or nothing
    was produced and the learner is not why."""
    span_s, worked = record["span_s"], record["worked_s"]
    actors, learners = roles_of(record, "actor"), roles_of(record, "learner")
    if span_s < LEAST_S or not worked or not actors or not learners:
        return None
    # Actors that take turns on a thread are busy one after the other.
    threads = len(actors) / max(1, record.get("actors_per_thread", 1))
    sampling = _side(record, actors, span_s, threads)
    training = _side(record, learners, span_s, len(learners))
    if sampling.busy + training.busy < NO_WORK:
        return None
    if not record["rates_per_s"]["produced"] and training.busy < 1 / 2:
        return None
    away_s = _away_s(record, training)
    if away_s:
        training = _side(record, learners, span_s - away_s, len(learners))
    # Saving keeps the learner from updates, and no other role can help: it counts as work.
    parts = {**training.parts, "saving": training.waits.get("saving", 0.0)}
    return Account(
        span_s=span_s,
        num_actors=len(actors),
        actors=sampling,
        learner=replace(training, parts=parts),
        rates=record["rates_per_s"],
        usable_cores=record["usable_cores"],
        server=_server(record, span_s),
        away_s=away_s,
        absence=_absence(record, sampling),
        waited_for_others={
            role: record["waited_s"].get(role, {}).get("others", 0.0) / span_s for role in learners
        },
    )


def _away_s(record: Metrics, learner: Side) -> float:
    """Return the time that a learner neither worked nor waited, if it was started again."""
    missing_s = record["span_s"] * learner.missing
    return missing_s if record["learner_restarts"] and missing_s >= LEAST_S else 0.0


def _absence(record: Metrics, actors: Side) -> Absence | None:
    """Return for how long the actors neither worked nor waited, if they were started again."""
    restarts, is_long = record["actor_restarts"], record["span_s"] * actors.missing >= LEAST_S
    if not restarts or not is_long or actors.missing < UNACCOUNTED:
        return None
    return Absence(actors.missing, restarts, record["env_failures"])


def _server(record: Metrics, span_s: float) -> Server | None:
    servers = roles_of(record, "inference")
    if not servers:
        return None
    busy = max(record["busy_share"].get(role, 0.0) for role in servers)
    return Server(busy, sum(record["core_s"].get(role, 0.0) for role in servers) / span_s)


def _side(record: Measured, roles: Sequence[str], span_s: float, num_threads: float) -> Side:
    known = [record["core_s"][role] for role in roles if role in record["core_s"]]
    return Side(
        parts=_mean(record["worked_s"], roles, span_s * num_threads / len(roles)),
        waits=_within_span(_mean(record["waited_s"], roles, span_s)),
        on_core=sum(known) / span_s if known else None,
    )


def _within_span(waits: Mapping[str, float]) -> dict[str, float]:
    """Return waits that are no longer than the time span: gauges count a wait when it is over, also
    one that began before. `core` overlaps with the others."""
    together = sum(share for cause, share in waits.items() if cause != "core")
    most = max(1.0, together)
    return {
        cause: min(1.0, share) if cause == "core" else share / most
        for cause, share in waits.items()
    }


def _mean(spent_s: Spent, roles: Sequence[str], span_s: float) -> dict[str, float]:
    found = [spent_s[role] for role in roles if role in spent_s]
    names = dict.fromkeys(name for parts in found for name in parts)
    return {
        name: sum(parts.get(name, 0.0) for parts in found) / len(found) / span_s for name in names
    }
