"""Roles of one worker on a thread each."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any

from tianji.buffer.role import Buffer
from tianji.types import Array, Batch


def run_on_threads(loops: Sequence[Callable[[], None]]) -> None:
    """Run each on a thread of its own; the first exception of any is raised here."""
    ended: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()

    def run(loop: Callable[[], None]) -> None:
        try:
            loop()
            ended.put(None)
        except BaseException as error:  # noqa: BLE001 - it is raised in the caller's thread
            ended.put(error)

    for loop in loops:
        threading.Thread(target=run, args=[loop], daemon=True).start()
    for _ in loops:
        if (error := ended.get()) is not None:
            raise error


class LockedBuffer(Buffer):
    """A buffer that its own thread ticks and the learner's thread takes batches from."""

    def __init__(self, buffer: Buffer, wake_learner: Callable[[], None]) -> None:
        self.__dict__.update(buffer.__dict__)
        self._wake_learner = wake_learner
        self._lock = threading.Lock()

    def tick(self) -> bool:
        with self._lock:
            worked = super().tick()
        if worked:
            self._wake_learner()
        return worked

    def take(self) -> Batch | None:
        with self._lock:
            return super().take()

    def finish(self, batch: Batch, version: int, priorities: Array | None = None) -> None:
        with self._lock:
            super().finish(batch, version, priorities)

    def state(self) -> dict[str, Any]:
        with self._lock:
            return super().state()
