"""What a link carries, and what carries it.

A port is one end of one forwarded channel: a stream, a board, rows of orders or gauges. The two
ends of a link have the same ports in the same order, so that a number names the channel.

    gateway                                   port
    port.pump()            local -> link      while outlet.has_room(n): outlet.send(note, body)
    port.place(note, n)    link -> local      where the body of an arriving message goes
    port.receive(note, body)                  the message has arrived
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tianji.gateways.clock import ClockOffset

Settled = Callable[[bool], None]
"""Called once when a message has arrived (True) or is void (False)."""


class Outlet(Protocol):
    """A port's way out: its channel of a link."""

    clock: ClockOffset

    def has_room(self, nbytes: int) -> bool:
        """Return whether the window has room for a message of this size."""

    def send(
        self, note: bytes, body: memoryview | bytes = b"", settled: Settled | None = None
    ) -> None:
        """Send a message that arrives once and in order. The body must stay until it is settled."""


class Port(Protocol):
    """One end of a forwarded channel. All calls come from the gateway's thread."""

    wiring: str
    """What the channel is; the same at both ends, or they are refused."""
    max_body_bytes: int

    def open(self, outlet: Outlet) -> None:
        """Called once, when the port joins its link."""

    def pump(self) -> bool:
        """Forward what is there; return whether anything was."""

    def place(self, note: bytes, nbytes: int) -> memoryview | None:
        """Return where a body goes; None where nobody wants it any more."""

    def receive(self, note: bytes, body: memoryview | None) -> None:
        """Take a message whose body is complete."""

    def interrupted(self) -> None:
        """The connection broke: a body that was placed and not received will come again."""

    def reset(self) -> None:
        """The peer is new or was given up: nothing that was said before counts."""
