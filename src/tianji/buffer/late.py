"""Unrolls in work that would be too old after the next version: asked for, and waited for a little.

This is how the bound on lag is held without throwing data away: the actor hands over what it has
after its current step, and the learner takes it in. A world whose single step takes longer than
PATIENCE_NS holds up nobody further; what it delivers then is the last resort's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

from tianji.buffer.orders import BufferOrders
from tianji.channels.gauges import Gauge
from tianji.channels.orders import ActorRows
from tianji.types import Clock

PATIENCE_NS = 250_000_000

RoundInWork: TypeAlias = Callable[[int], int | None]
"""The round that an actor is on; None when it holds no grant."""


class LateUnrolls:
    """Remembers whom it asked, since when, and whom it has stopped waiting for."""

    def __init__(
        self,
        max_lag: int,
        actors: Sequence[ActorRows],
        now_ns: Clock = time.monotonic_ns,
    ) -> None:
        self._max_lag = max_lag
        self._orders = BufferOrders(actors)
        self._gauges = [actor.gauges for actor in actors]
        self._now_ns = now_ns
        self._since: dict[int, tuple[int, int]] = {}
        """By actor: the round that was waited for last, and since when."""
        self._gone: set[int] = set()
        """Actors that died; what their gauges show is out of date."""
        self._version = -1
        self._awaited: list[tuple[int, int]] = []
        """(actor, round) of those that hold up this version. There are no new ones until the next:
        what is begun now is of this version."""
        for actor in range(len(actors)):
            self._orders.hurry_no_more(
                actor
            )  # what a buffer before this one asked for, in other rounds

    def forget(self, actor: int) -> None:
        """The actor died: its unroll is no longer in work, and its round is made again."""
        self._gone.add(actor)
        self._orders.hurry_no_more(actor)
        self._since.pop(actor, None)

    def came(self, actor: int) -> None:
        """The actor has started, with nothing in work: its gauges are its own again."""
        self._gone.discard(actor)

    def holds_up(self, version: int, in_work: RoundInWork) -> bool:
        """Whether the next version should wait for one of the unrolls in work."""
        if version != self._version:
            self._version = version
            self._awaited = self._ask(in_work)
        while self._awaited:
            actor, round_number = self._awaited[-1]
            is_in_work = self._is_late(actor) and in_work(actor) == round_number
            if is_in_work and self._now_ns() - self._since[actor][1] < PATIENCE_NS:
                return True
            self._awaited.pop()
        return False

    def _ask(self, in_work: RoundInWork) -> list[tuple[int, int]]:
        asked = []
        for actor in range(len(self._gauges)):
            if not self._is_late(actor) or (round_number := in_work(actor)) is None:
                continue
            self._orders.hurry(actor, round_number)
            if self._since.get(actor, (-1, 0))[0] != round_number:
                self._since[actor] = round_number, self._now_ns()
            asked.append((actor, round_number))
        return asked

    def _is_late(self, actor: int) -> bool:
        started = self._gauges[actor][Gauge.STARTED_VERSION] - 1
        return (
            started >= 0 and actor not in self._gone and self._version + 1 - started > self._max_lag
        )
