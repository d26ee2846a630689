"""faster-fifo's `Queue`, 64 MB, with the serializers left out and `get_many`."""

from __future__ import annotations

import ctypes
from collections import deque
from typing import Any

import faster_fifo  # type: ignore[import-not-found]  # it is in .peers

from benchmarks.transports.experiment import make_payload
from benchmarks.transports.points import KEPT_BYTES, Point
from benchmarks.transports.processes import run_forked

LENGTH_BYTES = 8  # stands before every message in its ring


def run(name: str, point: Point) -> dict[str, Any]:
    return run_forked(name, point, FifoEnds(point))


class FifoEnds:
    def __init__(self, point: Point) -> None:
        self._point = point
        self._queue: Any = faster_fifo.Queue(
            KEPT_BYTES,
            # A receiver that copies does so before it asks for more, so it needs no own bytes.
            loads=_as_it_is if point.is_copying else bytes,
            dumps=_as_it_is,
        )

    def sender(self, actor: int) -> FifoSender:
        return FifoSender(self._point, self._queue)

    def receiver(self) -> FifoReceiver:
        return FifoReceiver(self._point, self._queue)


def _as_it_is(message: Any) -> Any:
    return message


class FifoSender:
    """Copies the payload from where it lies into the ring."""

    def __init__(self, point: Point, queue: Any) -> None:
        self.payload = make_payload(point.size_bytes)
        self._message = (ctypes.c_uint8 * point.size_bytes).from_buffer(self.payload)
        self._put = queue.put

    def send(self, payload: memoryview) -> memoryview:
        self._put(self._message)
        return payload

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass


class FifoReceiver:
    def __init__(self, point: Point, queue: Any) -> None:
        self.max_kept = point.num_kept
        self._queue = queue
        self._queue.reallocate_msg_buffer(KEPT_BYTES + LENGTH_BYTES)
        self._arrived: deque[Any] = deque()

    def receive(self) -> Any:
        if not self._arrived:
            self._arrived.extend(self._queue.get_many())
        return self._arrived.popleft()

    def close(self) -> None:
        pass
