"""The virtual clock, whose time moves to the next event, and the links between machines.

Every machine has one link out and one link in; messages on a link wait for each other. A message
leaves by its sender's link, travels for the latency, and enters by its receiver's link.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class NetworkModel:
    """NetworkModel(bytes_per_s=1.25e9, latency_s=50e-6): 10 Gbit/s."""

    bytes_per_s: float = 1.25e9
    latency_s: float = 50e-6

    def all_reduce_s(self, nbytes: int, num_members: int) -> float:
        """Return the time of a ring, where each of G members sends 2 (G - 1) parts of 1 / G."""
        steps = 2 * (num_members - 1)
        return steps * (nbytes / num_members / self.bytes_per_s + self.latency_s)


class Link:
    """One direction: messages one after the other."""

    def __init__(self, clock: VirtualClock, bytes_per_s: float) -> None:
        self._clock = clock
        self._bytes_per_s = bytes_per_s
        self._free_ns = 0
        self.busy_ns = 0

    def send(self, nbytes: int, deliver: Action) -> None:
        took_ns = round(nbytes / self._bytes_per_s * 1e9)
        self._free_ns = max(self._free_ns, self._clock.now_ns()) + took_ns
        self.busy_ns += took_ns
        self._clock.at(self._free_ns, deliver)


class Network:
    """The links of all machines."""

    def __init__(self, clock: VirtualClock, model: NetworkModel, num_nodes: int) -> None:
        self._clock = clock
        self._latency_ns = round(model.latency_s * 1e9)
        self.out = [Link(clock, model.bytes_per_s) for _ in range(num_nodes)]
        self.into = [Link(clock, model.bytes_per_s) for _ in range(num_nodes)]
        self.sent_bytes: Counter[str] = Counter()

    def send(
        self, source: int, target: int, nbytes: int, deliver: Action, kind: str = "other"
    ) -> None:
        """kind: what the message is, for `sent_bytes`."""
        self.sent_bytes[kind] += nbytes

        def arrive() -> None:
            self.into[target].send(nbytes, deliver)

        self.out[source].send(nbytes, lambda: self._clock.after(self._latency_ns, arrive))

    def signal(self, deliver: Action) -> None:
        """Send a few bytes, which only take the latency."""
        self._clock.after(self._latency_ns, deliver)
