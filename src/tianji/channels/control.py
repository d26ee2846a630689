"""The control segment of a run: gauges and orders of every role, and a bell per worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tianji.channels.gauges import GAUGE_WORDS, Gauges
from tianji.channels.memory import BELL_BYTES, Bell, Segment
from tianji.channels.orders import ORDER_WORDS, Order, Orders, Stop
from tianji.types import RoleKind

ROLE_BYTES = 8 * (GAUGE_WORDS + 2 * ORDER_WORDS)


def control_bytes(num_roles: int, num_workers: int) -> int:
    """Return the size of the control segment."""
    return ROLE_BYTES * num_roles + BELL_BYTES * num_workers


class Control:
    """The same view in every process, over one segment."""

    def __init__(
        self, kinds: Mapping[str, RoleKind], workers: Sequence[str], segment: Segment
    ) -> None:
        """kinds: the kind of every role, by its name."""
        num_roles = len(kinds)
        self.segment = segment
        self.gauges = Gauges(kinds, segment.words(0, GAUGE_WORDS * num_roles))
        offset = 8 * GAUGE_WORDS * num_roles
        self.supervision = Orders(kinds, segment.words(offset, ORDER_WORDS * num_roles))
        """Orders of the supervisor to every role."""
        offset += 8 * ORDER_WORDS * num_roles
        self.orders = Orders(kinds, segment.words(offset, ORDER_WORDS * num_roles))
        """Orders of the buffer to its actors."""
        self._bells_at = ROLE_BYTES * num_roles
        self._workers = {worker: number for number, worker in enumerate(workers)}

    @staticmethod
    def create(kinds: Mapping[str, RoleKind], workers: Sequence[str]) -> Control:
        segment = Segment.create("control", control_bytes(len(kinds), len(workers)))
        control = Control(kinds, workers, segment)
        for worker in workers:
            control.bell(worker).initialise()
        return control

    def bell(self, worker: str) -> Bell:
        """Open a worker's bell. Each thread that rings one needs a bell of its own."""
        return Bell(self.segment, self._bells_at + self._workers[worker] * BELL_BYTES)

    def ring_all(self) -> None:
        for worker in self._workers:
            self.bell(worker).ring()

    def stop(self, how: Stop) -> None:
        """Tell every role; a worker that sleeps wakes up. A stop only becomes more urgent."""
        for role, row in self.supervision.rows.items():
            self.supervision.post(role, Order.STOP, max(row[Order.STOP], how))
        self.ring_all()
