"""Unrolls in work that would be too old after the next version: asked for, and waited for a little.

This is how the bound on lag is held without throwing data away: the actor hands over what it has
after its current step, and the learner takes it in. A world whose single step takes longer than
PATIENCE_NS holds up nobody further; what it delivers then is the last resort's.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from tianji.channels.gauges import Gauge
from tianji.types import Clock

PATIENCE_NS = 250_000_000


class LateUnrolls:
    """Remembers whom it asked, since when, and whom it has stopped waiting for."""

    def __init__(
        self,
        max_lag: int,
        actor_gauges: Sequence[memoryview[int]],
        now_ns: Clock = time.monotonic_ns,
    ) -> None:
        self._max_lag = max_lag
        self._gauges = actor_gauges
        self._now_ns = now_ns
        self._since: dict[int, int] = {}
        """When each unroll (actor's round) was first waited for, by actor."""
        self._round: dict[int, int] = {}
        for row in actor_gauges:
            row[Gauge.HURRY] = 0  # what a buffer before this one asked for, in other rounds

    def forget(self, actor: int) -> None:
        """The actor died: its unroll is no longer in work, and its round is made again."""
        self._gauges[actor][Gauge.STARTED_VERSION] = self._gauges[actor][Gauge.HURRY] = 0
        self._round.pop(actor, None)

    def holds_up(self, version: int, in_work: Mapping[int, int]) -> bool:
        """Whether the next version should wait for one of the unrolls in work (round by actor)."""
        waits = False
        for actor, round_number in in_work.items():
            row = self._gauges[actor]
            started = row[Gauge.STARTED_VERSION] - 1
            if started < 0 or version + 1 - started <= self._max_lag:
                continue
            row[Gauge.HURRY] = round_number + 1
            if self._round.get(actor) != round_number:
                self._round[actor] = round_number
                self._since[actor] = self._now_ns()
            waits |= self._now_ns() - self._since[actor] < PATIENCE_NS
        return waits
