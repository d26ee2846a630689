"""`multiprocessing.Pipe`: one pipe per sender, `send_bytes` and `recv_bytes`."""

from __future__ import annotations

import selectors
from collections import deque
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.transports.experiment import make_payload
from benchmarks.transports.points import Point
from benchmarks.transports.processes import FORK, run_forked


def run(name: str, point: Point) -> dict[str, Any]:
    return run_forked(name, point, PipeEnds(point))


class PipeEnds:
    def __init__(self, point: Point) -> None:
        self._point = point
        self._pipes = [FORK.Pipe() for _ in range(point.actors)]  # faster than one-way ones

    def sender(self, actor: int) -> PipeSender:
        return PipeSender(self._point, self._pipes[actor][1])

    def receiver(self) -> PipeReceiver:
        return PipeReceiver(self._point, [reader for reader, _ in self._pipes])


class PipeSender:
    def __init__(self, point: Point, pipe: Connection) -> None:
        self.payload = make_payload(point.size_bytes)
        self._pipe = pipe

    def send(self, payload: memoryview) -> memoryview:
        self._pipe.send_bytes(payload)  # returns when the payload is in the pipe
        return payload

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self._pipe.close()


class PipeReceiver:
    """Waits on all pipes with one selector that stays; `connection.wait` makes one per call."""

    def __init__(self, point: Point, pipes: list[Connection]) -> None:
        self.max_kept = point.num_kept
        self._pipes = pipes
        self._ready: deque[Connection] = deque()
        self._selector = selectors.DefaultSelector()
        for pipe in pipes:
            self._selector.register(pipe.fileno(), selectors.EVENT_READ, pipe)

    def receive(self) -> bytes:
        if len(self._pipes) == 1:
            return self._pipes[0].recv_bytes()
        while not self._ready:
            self._ready.extend(key.data for key, _ in self._selector.select())
        return self._ready.popleft().recv_bytes()

    def close(self) -> None:
        self._selector.close()
