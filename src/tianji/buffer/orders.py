"""What the buffer asks of actors; the other end is actor/orders.py."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tianji.channels.gauges import Gauge


class ActorOrders:
    """Writes orders into the actors' rows of gauges."""

    def __init__(self, actor_gauges: Sequence[memoryview[int]]) -> None:
        self._rows = actor_gauges

    def hurry(self, actor: int, round_number: int) -> None:
        """Ask for the unroll of this round now, however short it is."""
        self._rows[actor][Gauge.HURRY] = round_number + 1

    def hurry_no_more(self, actor: int) -> None:
        self._rows[actor][Gauge.HURRY] = 0

    def close(self, version: int, spared: Collection[int]) -> None:
        """Tell actors that gradients at this version are no longer wanted, except those spared."""
        for actor, row in enumerate(self._rows):
            if actor not in spared:
                row[Gauge.CLOSED] = version + 1

    def open(self, now_ns: int) -> None:
        """Tell actors since when gradients at the newest version are wanted."""
        for row in self._rows:
            row[Gauge.OPENED_NS] = now_ns
