"""TensorBoard events, written beside the run.

Takes       scalars, from any thread, without waiting
Gives       an events.out.tfevents file in the run's folder
Waits for   records, and at first some seconds: importing TensorBoard takes a tenth of a second
            of one core, which would delay the first steps
Unblocked by add() and close()
Stops when  close() is called and everything is on disk, or when the disk refuses
"""

from __future__ import annotations

import os
import queue
import socket
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

START_DELAY_S = 3.0


class TensorBoardLog:
    """Writes scalars in a thread of its own."""

    def __init__(self, run_dir: Path, on_problem: Callable[[str], None]) -> None:
        self._run_dir = run_dir
        self._on_problem = on_problem
        self._records: queue.SimpleQueue[tuple[float, int, Mapping[str, float] | None] | None]
        self._records = queue.SimpleQueue()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, wall_time: float, step: int, scalars: Mapping[str, float]) -> None:
        self._put(wall_time, step, scalars)

    def go_back(self, wall_time: float, step: int) -> None:
        """Make TensorBoard forget what was added at this step and later: the run repeats it."""
        self._put(wall_time, step, None)

    def _put(self, wall_time: float, step: int, scalars: Mapping[str, float] | None) -> None:
        self._records.put((wall_time, step, scalars))
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="tensorboard", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Wait until everything added is on disk."""
        self._closing.set()
        self._records.put(None)
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        self._closing.wait(START_DELAY_S)
        try:
            self._write_all()
        except (OSError, ImportError) as error:
            self._on_problem(f"TensorBoard events stop here: {error}.")

    def _write_all(self) -> None:
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.record_writer import RecordWriter

        # Its EventFileWriter would add a second thread, which dies with a traceback on a full disk.
        now = time.time()
        name = f"events.out.tfevents.{now:.6f}.{socket.gethostname()}.{os.getpid()}"
        with (self._run_dir / name).open("wb") as file:
            writer = RecordWriter(file)
            writer.write(Event(wall_time=now, file_version="brain.Event:2").SerializeToString())
            while (record := self._records.get()) is not None:
                wall_time, step, scalars = record
                event = Event(wall_time=wall_time, step=step)
                if scalars is None:
                    event.session_log.status = SessionLog.START
                else:
                    values = [Summary.Value(tag=tag, simple_value=v) for tag, v in scalars.items()]
                    event.summary.CopyFrom(Summary(value=values))
                writer.write(event.SerializeToString())
                writer.flush()
