"""What is asked of a link, and what it reports of itself."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

NEVER_NS = 1 << 62


class LinkLimits(NamedTuple):
    """Bounds of one link."""

    max_messages: int = 4096
    max_bytes: int = 64 << 20
    """Bytes sent and not acknowledged. Throughput is at most this for each round trip."""
    ping_period_ns: int = 1_000_000_000
    silent_after_ns: int = 5_000_000_000
    gone_after_ns: int = 30_000_000_000


class LinkState(Enum):
    """What is known of the peer."""

    EXPECTED = "never connected"
    UP = "connected"
    BROKEN = "the connection is broken"
    GONE = "given up"


class LinkReport(NamedTuple):
    """For people, `status` and the head."""

    peer: str
    state: LinkState
    state_since_ns: int
    num_connections: int
    bytes_sent: int
    bytes_received: int
    clock_error_ns: int | None
    """Bound of the error of corrected times; None while the offset of the clocks is unknown."""
