"""`torch.multiprocessing.Queue` of tensors: their storage goes into shared memory, a descriptor
travels, the receiver maps it."""

from __future__ import annotations

import resource
from typing import Any

import numpy as np
import torch
import torch.multiprocessing

from benchmarks.transports.experiment import make_payload
from benchmarks.transports.points import Point
from benchmarks.transports.processes import run_forked

MAX_IN_FLIGHT = 64
SPARE_FILES = 256  # descriptors that everything but kept tensors may use


def run(name: str, point: Point) -> dict[str, Any]:
    torch.set_num_threads(1)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return run_forked(name, point, TorchEnds(point))


class TorchEnds:
    def __init__(self, point: Point) -> None:
        self._point = point
        self._queue: Any = torch.multiprocessing.get_context("fork").Queue(MAX_IN_FLIGHT)

    def sender(self, actor: int) -> TorchSender:
        return TorchSender(self._point, self._queue)

    def receiver(self) -> TorchReceiver:
        return TorchReceiver(self._point, self._queue)


class TorchSender:
    def __init__(self, point: Point, queue: Any) -> None:
        self.payload = make_payload(point.size_bytes)
        self._tensor = torch.from_numpy(np.asarray(self.payload))
        self._queue = queue

    def send(self, payload: memoryview) -> memoryview:
        # The storage itself becomes shared memory, so every message needs a tensor of its own.
        self._queue.put(self._tensor.clone())
        return payload

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self._queue.close()


class TorchReceiver:
    """Every tensor that is kept holds a file open."""

    def __init__(self, point: Point, queue: Any) -> None:
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.max_kept = min(point.num_kept, files - SPARE_FILES)
        self._queue = queue

    def receive(self) -> Any:
        return self._queue.get().numpy()  # the array keeps the tensor's memory

    def close(self) -> None:
        pass
