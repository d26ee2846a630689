"""Ray: the payload is the argument of a call of the receiving actor, 32 calls in flight.

From 100 KB an argument goes through the object store; the receiver keeps the array that lies there.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections import deque
from typing import Any

import numpy as np
import ray  # type: ignore[import-not-found]  # it is in .peers

from benchmarks.transports.experiment import (
    HEAD_START_S,
    Keeper,
    ReceiverMarks,
    SenderMarks,
    cpu_s,
    figures,
    make_payload,
    send_all,
    wait_until,
)
from benchmarks.transports.points import MB, Point

MAX_IN_FLIGHT = 32
STORE_BYTES = 2048 * MB


def run(name: str, point: Point) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="ray-") as folder:
        ray.init(
            num_cpus=1,  # actors ask for none; this is how many idle workers Ray starts
            object_store_memory=STORE_BYTES,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="ERROR",
            _temp_dir=folder,
            runtime_env={"env_vars": {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}},
        )
        try:
            return _run(name, point)
        finally:
            ray.shutdown()


def _run(name: str, point: Point) -> dict[str, Any]:
    receiver = ray.remote(RayReceiver).options(num_cpus=0).remote(point)
    sending = ray.remote(RaySender).options(num_cpus=0)
    senders = [sending.remote(point, actor, receiver) for actor in range(point.actors)]
    ray.get([sender.warm_up.remote() for sender in senders])
    start_at = time.monotonic() + HEAD_START_S
    ray.get(receiver.start.remote(start_at))
    marks = ray.get([sender.run.remote(start_at) for sender in senders])
    return figures(name, point, marks, ray.get(receiver.finish.remote()))


class RayReceiver:
    def __init__(self, point: Point) -> None:
        self._point = point
        self._keeper = Keeper(point)
        if point.is_copying:
            self._keeper.make_region()
        self._started = self._used_before = 0.0
        self._marks: ReceiverMarks | None = None

    def start(self, start_at: float) -> None:
        self._keeper.start_over()
        self._started, self._used_before = start_at, cpu_s()

    def keep(self, message: np.ndarray[Any, Any]) -> None:
        self._keeper.keep(message)
        if self._keeper.received == self._point.messages:
            collection_s = time.monotonic() - self._started
            used_s = cpu_s() - self._used_before
            self._marks = ReceiverMarks(used_s, collection_s, self._keeper.received)

    def finish(self) -> ReceiverMarks:
        self._keeper.finish()
        assert self._marks is not None
        return self._marks


class RaySender:
    """Ray copies the payload while `remote` is called, so one payload is enough."""

    def __init__(self, point: Point, actor: int, receiver: Any) -> None:
        self._point = point
        self._actor = actor
        self._receiver = receiver
        self.payload = make_payload(point.size_bytes)
        self._array = np.asarray(self.payload)
        self._calls: deque[Any] = deque()

    def warm_up(self) -> None:
        send_all(self._point.warm_up, self._actor, self)

    def run(self, start_at: float) -> SenderMarks:
        wait_until(start_at)
        used_before = cpu_s()
        sample_s = send_all(self._point, self._actor, self)
        return SenderMarks(cpu_s() - used_before, sample_s)

    def send(self, payload: memoryview) -> memoryview:
        if len(self._calls) == MAX_IN_FLIGHT:
            ray.get(self._calls.popleft())
        self._calls.append(self._receiver.keep.remote(self._array))
        return payload

    def flush(self) -> None:
        ray.get(list(self._calls))
        self._calls.clear()

    def close(self) -> None:
        pass
