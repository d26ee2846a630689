"""Rows of orders and of gauges, forwarded to another host.

Orders say what is wanted now: a row crosses when it has changed, and every change arrives. Gauges
are telemetry: all rows cross a few times a second, and when an actor begins or ends an item. They
arrive in order with the items, so that the buffer knows which ones are in work.
Times among the words are corrected by the offset of the clocks.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Sequence

from tianji.channels.gauges import GAUGE_WORDS, Gauge
from tianji.channels.orders import ORDER_WORDS, Order
from tianji.gateways.interface import Outlet
from tianji.gateways.ports.sending import SendingPort
from tianji.gateways.refusals import Refusal, Refused

_ORDERS = struct.Struct(f"!{ORDER_WORDS}q")
_GAUGES = struct.Struct(f"!{GAUGE_WORDS}q")
_INDEX = struct.Struct("!I")
ORDER_TIMES = (Order.OPENED_NS,)
GAUGE_TIMES = (Gauge.HEARTBEAT_NS, Gauge.FIRST_STEP_NS)
GAUGES_PERIOD_NS = 100_000_000
_BATCH_ROWS = 64

Rows = Sequence[memoryview]


class OrdersSource(SendingPort):
    """Reads rows of orders on their writer's host."""

    def __init__(self, name: str, rows: Rows) -> None:
        self.wiring = f"orders {name} {len(rows)}"
        self.max_body_bytes = _ORDERS.size
        self._rows = rows
        self._numbers = [0] * len(rows)

    def pump(self) -> bool:
        has_moved = False
        for index, row in enumerate(self._rows):
            number = row[Order.NUMBER]
            if number != self._numbers[index] and self._outlet.has_room(_ORDERS.size):
                # The number was read first, so the words are at least as new as it is.
                words = row.tolist()
                words[Order.NUMBER] = number
                self._outlet.send(_INDEX.pack(index), _ORDERS.pack(*words))
                self._numbers[index] = number
                has_moved = True
        return has_moved

    def reset(self) -> None:
        """A new peer gets every row that was ever written."""
        self._numbers = [0] * len(self._rows)


class GaugesSource(SendingPort):
    """Reads rows of gauges on the host of their roles."""

    def __init__(
        self, name: str, rows: Rows, now_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self.wiring = f"gauges {name} {len(rows)}"
        self.max_body_bytes = _BATCH_ROWS * _GAUGES.size
        self._rows = rows
        self._now_ns = now_ns
        self._next_ns = 0
        self._begun: list[int] = []
        """The versions that items in work were begun with; the buffer asks late actors to hurry."""

    def pump(self) -> bool:
        now_ns = self._now_ns()
        begun = [row[Gauge.STARTED_VERSION] for row in self._rows]
        if now_ns < self._next_ns and begun == self._begun:
            return False
        if not self._outlet.has_room(len(self._rows) * _GAUGES.size):
            return False
        self._next_ns, self._begun = now_ns + GAUGES_PERIOD_NS, begun
        for first in range(0, len(self._rows), _BATCH_ROWS):
            rows = self._rows[first : first + _BATCH_ROWS]
            body = b"".join(_GAUGES.pack(*row.tolist()) for row in rows)
            self._outlet.send(_INDEX.pack(first), body)
        return True

    def reset(self) -> None:
        self._next_ns = 0


class _RowsSink:
    """Writes rows that arrive, word by word; it is their only writer on this host."""

    def __init__(
        self, wiring: str, rows: Rows, row: struct.Struct, times: Sequence[int], max_rows: int
    ) -> None:
        self.wiring = wiring
        self.max_body_bytes = max_rows * row.size
        self._rows = rows
        self._row = row
        self._times = times
        self._arriving = memoryview(bytearray(self.max_body_bytes))

    def open(self, outlet: Outlet) -> None:
        self._outlet = outlet

    def pump(self) -> bool:
        return False

    def place(self, note: bytes, nbytes: int) -> memoryview | None:
        num_rows, rest = divmod(nbytes, self._row.size)
        if len(note) != _INDEX.size or rest:
            raise Refused(Refusal.GARBAGE)
        if _INDEX.unpack(note)[0] + num_rows > len(self._rows):
            raise Refused(Refusal.GARBAGE)
        return self._arriving[:nbytes]

    def receive(self, note: bytes, body: memoryview | None) -> None:
        assert body is not None
        (first,) = _INDEX.unpack(note)
        for index, words in enumerate(self._row.iter_unpack(body), first):
            row = self._rows[index]
            for word in range(len(words) - 1, -1, -1):  # the number of an order's row comes last
                value = words[word]
                row[word] = self._outlet.clock.to_ours(value) if word in self._times else value
            self._written(index)

    def _written(self, index: int) -> None:
        """The row of this index is complete."""

    def interrupted(self) -> None:
        """A row that was not complete arrives again."""

    def reset(self) -> None:
        """Rows keep what was last wanted or measured."""


class OrdersSink(_RowsSink):
    """Writes the orders of another host's roles into local rows."""

    def __init__(self, name: str, rows: Rows, wake: Callable[[int], None] = lambda _: None) -> None:
        """wake: wakes the role of a row that has changed."""
        super().__init__(f"orders {name} {len(rows)}", rows, _ORDERS, ORDER_TIMES, 1)
        self._wake = wake

    def _written(self, index: int) -> None:
        self._wake(index)


class GaugesSink(_RowsSink):
    """Shows the gauges of another host's roles in local rows."""

    def __init__(self, name: str, rows: Rows) -> None:
        super().__init__(f"gauges {name} {len(rows)}", rows, _GAUGES, GAUGE_TIMES, _BATCH_ROWS)
