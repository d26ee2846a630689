"""The duration of one version when its parts share the cores: the model behind every prediction.

With B unrolls a version, n actors and C cores, a version takes at least

    sampling        (B / n) * unroll_s                      the actors, side by side
    training        version_s                               the learner's process
    communication   B * receive_s                           the part of it that only receives
    processors      (B * unroll_cpu_s + version_cpu_s) / C  all work divided by all cores

Actors and learner work at the same time, each at its own speed while there are enough cores. With
fewer cores, all get the same share until the first of the two sides is done; a learner with several
threads is then as slow as its slowest thread. In serial training (no lag allowed) one side waits
for the other. The load of the other cores follows from the duration of a version, and the duration
from the load: the result is their fixed point.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tianji.config.plan import Bottleneck
from tianji.costs.work import Work

_HALVINGS = 24
_EPSILON_S = 1e-12
_ONE = 1.1  # cores of one thread, and what its process does beside it


@dataclass(frozen=True, slots=True)
class Sides:
    """The work of both sides for one version."""

    num_actors: int
    unrolls_per_version: int
    unroll: Work
    version: Work
    receive_s: float
    num_cores: int
    is_serial: bool


@dataclass(frozen=True, slots=True)
class Period:
    """One version in the steady state. terms: the duration by each bound alone, under load."""

    seconds: float
    terms: Mapping[Bottleneck, float]

    @property
    def bottleneck(self) -> Bottleneck:
        """Return the largest term. The learner's process receives and trains in turns: if it is
        the limit and spends most of its time on receiving, communication is the bottleneck."""
        learner_s = max(self.terms["training"], self.terms["communication"])
        order: tuple[Bottleneck, ...] = ("sampling", "training", "processors")
        terms = {**self.terms, "training": learner_s}
        found = max(order, key=lambda name: terms[name])
        if found == "training" and self.terms["communication"] >= learner_s / 2:
            return "communication"
        return found


def period(sides: Sides) -> Period:
    """Return the duration that causes the load under which it is reached, by bisection."""
    low, high = _at(sides, 0.0, 0.0).seconds, _at(sides, 1.0, 1.0).seconds
    for _ in range(_HALVINGS if high > low * (1 + 1e-6) else 0):
        middle = (low + high) / 2
        if _at(sides, *_loads(sides, middle)).seconds > middle:
            low = middle
        else:
            high = middle
    return _at(sides, *_loads(sides, high))


def _loads(sides: Sides, seconds: float) -> tuple[float, float]:
    """Return the busy share of the other cores, as one actor and as the learner see it."""
    seconds = max(seconds, _EPSILON_S)
    sampling = sides.unrolls_per_version * sides.unroll.cpu_s / seconds
    training = sides.version.cpu_s / seconds
    own = max(1.0, sides.unroll.cores)
    others = sampling * (sides.num_actors - 1) / sides.num_actors + training
    on_actor = others / max(1.0, sides.num_cores - own)
    on_learner = sampling / max(1.0, sides.num_cores - max(1.0, sides.version.cores))
    return min(1.0, on_actor), min(1.0, on_learner)


def _at(sides: Sides, actor_load: float, learner_load: float) -> Period:
    unroll, version = sides.unroll.under(actor_load), sides.version.under(learner_load)
    rounds = sides.unrolls_per_version / sides.num_actors
    sampling_s = rounds * unroll.alone_s
    communication_s = sides.unrolls_per_version * sides.receive_s
    learner_s = max(version.alone_s, communication_s)
    cpu_s = sides.unrolls_per_version * unroll.cpu_s + version.cpu_s
    actors = _Side(sampling_s, sides.num_actors * unroll.cores)
    learner = _Side(learner_s, version.cores, is_gang=True)
    together = _in_turn if sides.is_serial else _side_by_side
    seconds = together(actors, learner, sides.num_cores)
    terms: dict[Bottleneck, float] = {
        "sampling": sampling_s,
        "training": version.alone_s,
        "communication": communication_s,
        "processors": cpu_s / sides.num_cores,
    }
    return Period(max(seconds, _EPSILON_S), terms)


@dataclass(frozen=True, slots=True)
class _Side:
    """The work of all actors, or of the learner, for one version.

    cores: how many cores it keeps busy.
    is_gang: its threads wait for each other, so all are as slow as the one that shares a core.
    """

    seconds: float
    cores: float
    is_gang: bool = False

    def among(self, cores_wanted: float, num_cores: int) -> float:
        """Return the duration while all work together wants this many cores."""
        crowd = max(1.0, cores_wanted / num_cores)
        return self.seconds * (math.ceil(crowd) if self.is_gang and self.cores > _ONE else crowd)


def _in_turn(actors: _Side, learner: _Side, num_cores: int) -> float:
    return sum(side.among(side.cores, num_cores) for side in (actors, learner))


def _side_by_side(actors: _Side, learner: _Side, num_cores: int) -> float:
    """Both sides start together; the slower one does the rest of its work alone."""
    wanted = actors.cores + learner.cores
    first_s, last_s = actors.among(wanted, num_cores), learner.among(wanted, num_cores)
    last = learner
    if first_s > last_s:
        first_s, last_s, last = last_s, first_s, actors
    left = 1 - first_s / last_s if last_s > 0 else 0.0
    return first_s + left * last.among(last.cores, num_cores)
