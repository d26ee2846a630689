"""The virtual clock: time is a number that moves to the next event."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import TypeAlias

Action: TypeAlias = Callable[[], None]

START_NS = 1_000_000_000  # not 0, which means "never" where times are gauges


class VirtualClock:
    """Events at the same time happen by rank, and events of one rank in the order in which they
    were added, so that two simulations of the same thing are the same to the last bit.

    >>> clock = VirtualClock()
    >>> clock.after(5, lambda: print(clock.now_ns() - START_NS))
    >>> clock.step()
    5
    True
    """

    def __init__(self, start_ns: int = START_NS) -> None:
        self._start_ns = self._now_ns = start_ns
        self._order = 0
        self._due: list[tuple[int, int, int, Action]] = []

    def now_ns(self) -> int:
        return self._now_ns

    def elapsed_s(self) -> float:
        """Return the time since the start of the simulation."""
        return self.elapsed_ns() / 1e9

    def elapsed_ns(self) -> int:
        return self._now_ns - self._start_ns

    def at(self, time_ns: int, action: Action, rank: int = 0) -> None:
        assert time_ns >= self._now_ns, "an event in the past"
        heapq.heappush(self._due, (time_ns, rank, self._order, action))
        self._order += 1

    def after(self, delay_ns: int, action: Action, rank: int = 0) -> None:
        self.at(self._now_ns + delay_ns, action, rank)

    def step(self) -> bool:
        """Run the next event; return False when there is none."""
        if not self._due:
            return False
        self._now_ns, _, _, action = heapq.heappop(self._due)
        action()
        return True
