"""Account: where the time of a run went, side by side. Pure; read from a record of metrics.

A run has two sides that work at the same time: the actors, and the learner's worker, which is also
the buffer's. Whoever works all the time sets the pace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tianji.observe.watch import is_actor

LACK_OF_CORES = 0.05
"""Share of its time without a core above which a side has too few of them."""
LEAST_S = 0.05
"""Of less time there is nothing to tell."""
NO_WORK = 0.01
"""Both sides together: what a worker that starts does now and then."""


@dataclass(frozen=True, slots=True)
class Side:
    """One side's time, as shares of the time that was looked at; actors: the mean of them."""

    parts: Mapping[str, float]
    """What its work is made of, by name."""
    waits: Mapping[str, float]
    """What it waited for, by name; `core` overlaps with everything else."""
    on_core: float | None
    """Processor time over time, of all its processes together; None where nobody measured it."""

    @property
    def worked(self) -> float:
        """The sum of the parts. It may exceed 1: gauges are not all read at the same moment."""
        return sum(self.parts.values())

    @property
    def busy(self) -> float:
        return min(1.0, self.worked)

    @property
    def no_core(self) -> float:
        return self.waits.get("core", 0.0)


@dataclass(frozen=True, slots=True)
class Account:
    """Both sides over one stretch of time."""

    span_s: float
    num_actors: int
    actors: Side
    learner: Side
    rates: Mapping[str, float]
    usable_cores: int | None

    @property
    def lacks_cores(self) -> bool:
        return max(self.actors.no_core, self.learner.no_core) > LACK_OF_CORES

    @property
    def unused_cores(self) -> float:
        """Cores that this run may use and does not; 0 where that is not known."""
        if self.usable_cores is None or self.actors.on_core is None or self.learner.on_core is None:
            return 0.0
        return max(0.0, self.usable_cores - self.actors.on_core - self.learner.on_core)

    @property
    def idle_cores(self) -> float:
        """Of the unused ones those that are free: who lacks a core has left none."""
        return 0.0 if self.lacks_cores else self.unused_cores


def to_account(record: Mapping[str, Any]) -> Account | None:
    """None where nobody has worked: the run has just begun, or its record says nothing of times."""
    span_s, worked = record.get("span_s") or 0.0, record.get("worked_s") or {}
    actors = [role for role in worked if is_actor(role)]
    if span_s < LEAST_S or not actors or "learner" not in worked:
        return None
    sampling, training = _side(record, actors, span_s), _side(record, ["learner"], span_s)
    if sampling.busy + training.busy < NO_WORK:
        return None
    return Account(
        span_s=span_s,
        num_actors=len(actors),
        actors=sampling,
        learner=_with_saving(training),
        rates=record.get("rates_per_s") or {},
        usable_cores=record.get("usable_cores"),
    )


def _side(record: Mapping[str, Any], roles: Sequence[str], span_s: float) -> Side:
    core_s = [record.get("core_s", {}).get(role) for role in roles]
    known = [seconds for seconds in core_s if seconds is not None]
    return Side(
        parts=_mean(record["worked_s"], roles, span_s),
        waits=_mean(record.get("waited_s") or {}, roles, span_s),
        on_core=sum(known) / span_s if known else None,
    )


def _with_saving(side: Side) -> Side:
    """Saving keeps the learner from its work, and nobody else can do anything about it."""
    saving = {"saving": side.waits.get("saving", 0.0)}
    return Side({**side.parts, **saving}, side.waits, side.on_core)


def _mean(
    spent_s: Mapping[str, Mapping[str, float]], roles: Sequence[str], span_s: float
) -> dict[str, float]:
    found = [spent_s[role] for role in roles if role in spent_s]
    names = dict.fromkeys(name for parts in found for name in parts)
    return {
        name: sum(parts.get(name, 0.0) for parts in found) / len(found) / span_s for name in names
    }
