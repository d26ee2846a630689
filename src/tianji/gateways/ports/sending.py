"""SendingPort: the end of a channel that sends and never receives."""

from __future__ import annotations

from tianji.gateways.interface import Outlet
from tianji.gateways.refusals import Refusal, Refused


class SendingPort:
    """Refuses every message of its peer. The link sends again what a broken connection has lost."""

    def open(self, outlet: Outlet) -> None:
        self._outlet = outlet

    def place(self, note: bytes, nbytes: int) -> memoryview | None:
        raise Refused(Refusal.GARBAGE)

    def receive(self, note: bytes, body: memoryview | None) -> None:
        raise Refused(Refusal.GARBAGE)

    def interrupted(self) -> None:
        """Do nothing."""
