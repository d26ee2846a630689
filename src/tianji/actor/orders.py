"""What the buffer and the supervisor ask of one actor."""

from __future__ import annotations

from tianji.channels.gauges import Gauge


class Orders:
    """Reads the orders in an actor's row of gauges."""

    def __init__(self, gauges: memoryview[int]) -> None:
        self._row = gauges

    def is_lane_ready(self) -> bool:
        """Return whether the lane was reset after the last actor on it died."""
        return self._row[Gauge.LANE_RESETS] == self._row[Gauge.LANE_RESETS_DONE]

    def is_hurried(self, round_number: int) -> bool:
        """Return whether the unroll of this round is to be sent now, however short it is."""
        return self._row[Gauge.HURRY] > round_number

    def is_closed(self, version: int) -> bool:
        """Return whether gradients at this version are no longer wanted."""
        return self._row[Gauge.CLOSED] > version

    def opened_ns(self) -> int:
        """Return since when gradients at the newest version are wanted."""
        return self._row[Gauge.OPENED_NS]
