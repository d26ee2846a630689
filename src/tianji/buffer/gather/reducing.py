"""AllReduced: the learner's side of the all-reduce realisation. It is rank 0 of the team.

When a round is closed, every member of the team gives its sum to one collective and takes the same
step with the total. The learner's side has no gradients of its own. It is in the team to know the
parameters (for checkpoints, evaluation, and actors that come later), and it chooses the members:

    REDUCE_READY   gauge of an actor: it can take part
    CALL           order to an actor: the team, and the version whose sums it gives now

A new team is made, within the same round, when a member died, fell silent, or a collective failed.
An actor outside the team does not step: it takes the next version from the board. The learner's
side gives the sum that it had posted in its place, so that no gradient is lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import numpy as np

from tianji.buffer.gather.adding import Adding
from tianji.buffer.gather.rules import GatherRule
from tianji.buffer.orders import BufferOrders
from tianji.channels.gauges import Gauge
from tianji.channels.orders import ActorRows, Order
from tianji.channels.reduce import Call, Team
from tianji.errors import ReduceBroken
from tianji.types import Array, Clock

MAX_ATTEMPTS = 3
"""Failed collectives of one version after which its sums are read from the actors' boards."""
RETRY_NS = 250_000_000
"""Delay after a failure; by then the supervisor has told which actor died."""
SILENT_NS = 5_000_000_000
"""Actors send heartbeats more often than this; a team does not wait for one that does not."""


class LeadingReduce(Protocol):
    """The first rank's end of a Reduce."""

    def announce(self, team: Team) -> None: ...

    def give(self, team: Team, rank: int, values: Array) -> None: ...

    def result(self) -> Array | None: ...


class AllReduced(Adding):
    """Makes one collective per version, and repeats it until it succeeds."""

    def __init__(
        self,
        rule: GatherRule,
        at_learner: Adding,
        reduce: LeadingReduce,
        actors: Sequence[ActorRows],
        wake_actors: Callable[[], None],
        now_ns: Clock = time.monotonic_ns,
    ) -> None:
        self._rule = rule
        self._at_learner = at_learner
        self._reduce = reduce
        self._rows = actors
        self._orders = BufferOrders(actors)
        self._wake_actors = wake_actors
        self._now_ns = now_ns
        # Actors that still wait for the team of an earlier learner are told that it is gone.
        self._team = Team(Call.of_word(self._orders.last_call()).team + 1, ())
        self._members: dict[int, int] = {}
        """Actors of the team, and how often each had been replaced when the team was made."""
        self._version = -1
        self._attempts = 0
        self._retry_ns: int | None = None
        self._news: list[str] = []
        self._told: set[int] = set()
        """Actors whose silence was reported."""
        self._reduce.announce(self._team)
        self._call()

    def add_up(self, version: int, actors: Iterable[int], sum_P: Array) -> list[int] | None:
        counted = list(actors)
        if version != self._version:
            self._version, self._attempts = version, 0
            self._begin(counted, sum_P)
        elif self._is_broken():
            self._begin(counted, sum_P)
        if not self._members:
            return self._at_learner.add_up(version, counted, sum_P)
        if (values := self._result()) is None:
            return None
        sum_P[:] = values[: len(sum_P)]
        return [round(count) for count in values[len(sum_P) :].tolist()]

    def news(self) -> list[str]:
        news, self._news = self._news, []
        return news

    def _is_broken(self) -> bool:
        """Return whether a member died or is silent, or a collective failed RETRY_NS ago."""
        if any(self._resets(actor) != count for actor, count in self._members.items()):
            return True
        if any(map(self._is_silent, self._members)):
            return True
        return self._retry_ns is not None and self._now_ns() >= self._retry_ns

    def _begin(self, counted: list[int], sum_P: Array) -> None:
        self._attempts += 1
        members = self._ready() if self._attempts <= MAX_ATTEMPTS else {}
        if members != self._members or self._attempts > 1:
            self._members = members
            self._team = Team(self._team.number + 1, tuple(members))
            self._reduce.announce(self._team)
        self._retry_ns = None
        if members:
            self._reduce.give(self._team, 0, self._posted_outside(counted, sum_P))
        self._call()

    def _ready(self) -> dict[int, int]:
        able = {
            actor: self._resets(actor)
            for actor, rows in enumerate(self._rows)
            if rows.gauges[Gauge.REDUCE_READY] == self._resets(actor) + 1
            and self._rule.takes(actor)
        }
        silent = [actor for actor in able if self._is_silent(actor)]
        self._tell_of(silent)
        return {actor: resets for actor, resets in able.items() if actor not in silent}

    def _resets(self, actor: int) -> int:
        return self._rows[actor].supervision[Order.RESETS]

    def _is_silent(self, actor: int) -> bool:
        return self._now_ns() - self._rows[actor].gauges[Gauge.HEARTBEAT_NS] > SILENT_NS

    def _tell_of(self, silent: list[int]) -> None:
        for actor in sorted(set(silent) - self._told):
            self._told.add(actor)
            self._news.append(
                f"actor-{actor} does not answer the all-reduce. The others continue without it "
                "until it answers again."
            )

    def _posted_outside(self, counted: list[int], sum_P: Array) -> Array:
        """Return the sum that actors outside the team have posted."""
        others = [actor for actor in counted if actor not in self._members]
        counts = self._at_learner.add_up(self._version, others, sum_P)
        assert counts is not None, "boards in memory are read at once"
        return np.concatenate([sum_P, counts], dtype=np.float64)

    def _result(self) -> Array | None:
        if self._retry_ns is not None:
            return None
        try:
            return self._reduce.result()
        except ReduceBroken as error:
            self._retry_ns = self._now_ns() + RETRY_NS
            self._news.append(f"{error} It is repeated without the missing actors.")
            return None

    def _call(self) -> None:
        self._orders.call(Call(self._team.number, self._version).to_word())
        self._wake_actors()
