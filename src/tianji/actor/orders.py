"""Orders to one actor, from the buffer and the supervisor."""

from __future__ import annotations

from tianji.channels.orders import ActorRows, Order


class ActorOrders:
    """Reads an actor's orders, one word at a time."""

    def __init__(self, rows: ActorRows) -> None:
        self._orders = rows.orders
        self._supervision = rows.supervision
        self._is_lane_ready = False

    def is_lane_ready(self) -> bool:
        """Return whether the lane was reset after the last actor on it died. Once it was, it stays
        ready as long as this actor lives."""
        if not self._is_lane_ready:
            self._is_lane_ready = self._orders[Order.RESETS] == self._supervision[Order.RESETS]
        return self._is_lane_ready

    def is_hurried(self, round_number: int) -> bool:
        """Return whether the unroll of this round is to be sent now, however short it is."""
        return self._orders[Order.HURRY] > round_number

    def is_closed(self, version: int) -> bool:
        """Return whether gradients at this version are no longer wanted."""
        return self._orders[Order.CLOSED] > version

    def opened_ns(self) -> int:
        """Return since when gradients at the newest version are wanted."""
        return self._orders[Order.OPENED_NS]

    def call(self) -> int:
        """Return the word that says which sums are wanted for an all-reduce (Call)."""
        return self._orders[Order.CALL]

    def num_predecessors(self) -> int:
        """Return how many processes have run this actor before and are gone."""
        return self._supervision[Order.RESETS]
