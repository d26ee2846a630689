"""The difference between the clocks of two hosts, from pings; pure.

CLOCK_MONOTONIC counts from the start of a host, so the times of two hosts may differ by anything. A
ping leaves at t0 and its answer comes back at t3 (our clock); in between the peer notes its arrival
t1 and its answer t2 (the peer's clock):

    offset = ((t1 - t0) + (t2 - t3)) / 2        error <= ((t3 - t0) - (t2 - t1)) / 2

The error is largest when the way there and the way back differ most. The ping with the shortest
way of the last few is believed, because queues only ever make a way longer.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

NUM_PINGS = 64
DRIFT = 1e-4
"""Two clocks drift apart by less than this: an old ping is trusted so much less."""


class _Ping(NamedTuple):
    offset_ns: int
    error_ns: int
    at_ns: int


class ClockOffset:
    """The peer's clock minus ours."""

    def __init__(self) -> None:
        self._pings: deque[_Ping] = deque(maxlen=NUM_PINGS)
        self.offset_ns = 0
        self.error_ns: int | None = None
        """Bound of the error; None before the first answer."""

    @property
    def is_known(self) -> bool:
        return self.error_ns is not None

    def add(self, t0: int, t1: int, t2: int, t3: int) -> None:
        """Note an answer; one that cannot be (an answer before its ping) is ignored."""
        way_ns = (t3 - t0) - (t2 - t1)
        if t3 < t0 or t2 < t1 or way_ns < 0:
            return
        self._pings.append(_Ping(((t1 - t0) + (t2 - t3)) // 2, way_ns // 2 + 1, t3))

        def bound(ping: _Ping) -> float:
            return ping.error_ns + DRIFT * (t3 - ping.at_ns)

        best = min(self._pings, key=bound)
        self.offset_ns, self.error_ns = best.offset_ns, int(bound(best))

    def forget(self) -> None:
        """Begin anew: the peer is another one, with another clock."""
        self._pings.clear()
        self.offset_ns, self.error_ns = 0, None

    def to_ours(self, peer_ns: int) -> int:
        """Return a time of the peer's clock as one of ours. 0 means "never" and stays 0."""
        return peer_ns - self.offset_ns if peer_ns else 0
