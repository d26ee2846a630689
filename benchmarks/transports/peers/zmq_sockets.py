"""pyzmq, PUSH to PULL over ipc or tcp, 32 messages in flight on either side.

Messages from 64 KB are sent without a copy, out of a pool: a payload may be written again when its
tracker says that the message has left. Smaller ones are copied, as pyzmq itself does by default.
"""

from __future__ import annotations

import tempfile
from collections import deque
from pathlib import Path
from typing import Any

import zmq  # type: ignore[import-not-found]  # it is in .peers

from benchmarks.transports.experiment import make_payload
from benchmarks.transports.points import KB, Point
from benchmarks.transports.processes import FORK, run_forked

HIGH_WATER = 32
NO_COPY_FROM = 64 * KB
POOL = 16
POOL_BYTES = 32 * 1024 * KB


def run(name: str, point: Point) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="zmq-") as folder:
        address = "tcp://127.0.0.1" if name == "zmq-tcp" else f"ipc://{Path(folder) / 'socket'}"
        return run_forked(name, point, ZmqEnds(point, address))


class ZmqEnds:
    """The receiver binds; with tcp it tells the port that it was given."""

    def __init__(self, point: Point, address: str) -> None:
        self._point = point
        self._address = address
        self._port = FORK.RawValue("i", 0)
        self._bound = FORK.Event()

    def sender(self, actor: int) -> ZmqSender:
        self._bound.wait()
        port = self._port.value
        return ZmqSender(self._point, f"{self._address}:{port}" if port else self._address)

    def receiver(self) -> ZmqReceiver:
        receiver = ZmqReceiver(self._point)
        if self._address.startswith("tcp"):
            self._port.value = receiver.socket.bind_to_random_port(self._address)
        else:
            receiver.socket.bind(self._address)
        self._bound.set()
        return receiver


class ZmqSender:
    def __init__(self, point: Point, address: str) -> None:
        self._is_copied = point.size_bytes < NO_COPY_FROM
        size = 1 if self._is_copied else max(4, min(POOL, POOL_BYTES // point.size_bytes))
        self._pool = deque(make_payload(point.size_bytes) for _ in range(size))
        self._trackers: deque[Any] = deque([None] * size)
        self.payload = self._pool[0]
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.PUSH)
        self._socket.set_hwm(HIGH_WATER)
        self._socket.connect(address)

    def send(self, payload: memoryview) -> memoryview:
        if self._is_copied:
            self._socket.send(payload, copy=True)
            return payload
        self._trackers.append(self._socket.send(payload, copy=False, track=True))
        self._trackers.popleft()
        self._pool.rotate(-1)
        if self._trackers[0] is not None:
            self._trackers[0].wait()
        return self._pool[0]

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self._socket.close(linger=0)
        self._context.term()


class ZmqReceiver:
    """Keeps the frames, whose memory is ZeroMQ's own."""

    def __init__(self, point: Point) -> None:
        self.max_kept = point.num_kept
        self._context = zmq.Context()
        self.socket = self._context.socket(zmq.PULL)
        self.socket.set_hwm(HIGH_WATER)

    def receive(self) -> Any:
        return self.socket.recv(copy=False)

    def close(self) -> None:
        self.socket.close(linger=0)
