"""Roles of one worker on a thread each."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any

from tianji.buffer.interface import BufferRole
from tianji.types import Batch


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


class LockedBuffer:
    """A buffer that its own thread ticks and the learner's thread takes batches from."""

    def __init__(self, buffer: BufferRole, wake_learner: Callable[[], None]) -> None:
        self._buffer = buffer
        self._wake_learner = wake_learner
        self._lock = threading.Lock()
        self.lag = buffer.lag

    def tick(self) -> bool:
        with self._lock:
            worked = self._buffer.tick()
        if worked:
            self._wake_learner()
        return worked

    def take(self) -> Batch | None:
        with self._lock:
            return self._buffer.take()

    def finish(self, batch: Batch, version: int) -> int:
        with self._lock:
            return self._buffer.finish(batch, version)

    def __getattr__(self, name: str) -> Any:
        """Guard whatever else the learner asks of the buffer between two versions."""
        with self._lock:
            found = getattr(self._buffer, name)
        return self._guarded(found) if callable(found) else found

    def _guarded(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*args: Any) -> Any:
            with self._lock:
                return call(*args)

        return guarded
