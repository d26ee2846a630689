"""Late unrolls: unrolls in work that would be too old after the next version.

The buffer asks the actor for what it has and waits up to PATIENCE_NS. This keeps the bound on lag
without losing data: the actor hands over its unroll after the current step, and the learner takes
it in. An environment whose step takes longer delivers too late; its unroll is discarded.
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
"""Returns the round that an actor is on; None when it holds no grant."""


class LateUnrolls:
    """Remembers which actors it asked, when, and which it no longer waits for."""

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
        """For each actor, the round that was waited for last, and the time when that began."""
        self._gone: set[int] = set()
        """Actors that died; their gauges are out of date."""
        self._version = -1
        self._awaited: list[tuple[int, int]] = []
        """(actor, round) of the unrolls that hold up this version. Unrolls begun now are of this
        version and are not late."""
        for actor in range(len(actors)):
            self._orders.hurry_no_more(actor)  # an earlier buffer may have asked, in other rounds

    def forget(self, actor: int) -> None:
        """Forget an actor that died: its unroll is no longer in work, its round is made again."""
        self._gone.add(actor)
        self._orders.hurry_no_more(actor)
        self._since.pop(actor, None)

    def came(self, actor: int) -> None:
        """Note that the actor has started, with nothing in work: its gauges are its own again."""
        self._gone.discard(actor)

    def holds_up(self, version: int, in_work: RoundInWork) -> bool:
        """Return whether the next version should wait for one of the unrolls in work."""
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
