"""Links between simulated machines: bandwidth and latency, store and forward.

Every machine has one link out and one link in; messages on a link wait for each other. A message
leaves by its sender's link, travels for the latency, and enters by its receiver's link.
"""

from __future__ import annotations

from dataclasses import dataclass

from tianji.virtual.clock import Action, VirtualClock


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

    def send(self, source: int, target: int, nbytes: int, deliver: Action) -> None:
        def arrive() -> None:
            self.into[target].send(nbytes, deliver)

        self.out[source].send(nbytes, lambda: self._clock.after(self._latency_ns, arrive))

    def signal(self, deliver: Action) -> None:
        """Send a few bytes, which only take the latency."""
        self._clock.after(self._latency_ns, deliver)
