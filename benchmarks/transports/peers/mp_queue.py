"""`multiprocessing.Queue` of bytes, 64 messages at most."""

from __future__ import annotations

from typing import Any

from benchmarks.transports.experiment import make_payload
from benchmarks.transports.points import Point
from benchmarks.transports.processes import FORK, run_forked

MAX_IN_FLIGHT = 64


def run(name: str, point: Point) -> dict[str, Any]:
    return run_forked(name, point, QueueEnds(point))


class QueueEnds:
    def __init__(self, point: Point) -> None:
        self._point = point
        self._queue: Any = FORK.Queue(MAX_IN_FLIGHT)

    def sender(self, actor: int) -> QueueSender:
        return QueueSender(self._point, self._queue)

    def receiver(self) -> QueueReceiver:
        return QueueReceiver(self._point, self._queue)


class QueueSender:
    def __init__(self, point: Point, queue: Any) -> None:
        self.payload = make_payload(point.size_bytes)
        self._queue = queue

    def send(self, payload: memoryview) -> memoryview:
        # A thread pickles it later, so the queue must be given an object of its own.
        self._queue.put(bytes(payload))
        return payload

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self._queue.close()


class QueueReceiver:
    def __init__(self, point: Point, queue: Any) -> None:
        self.max_kept = point.num_kept
        self.receive = queue.get

    def close(self) -> None:
        pass
