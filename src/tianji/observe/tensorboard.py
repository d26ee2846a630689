"""TensorBoard events: a record of metrics as flat scalars, written beside the run.

Takes       scalars, from any thread, without waiting
Gives       an events.out.tfevents file in the run's folder
Waits for   records, and at first some seconds: importing TensorBoard takes a tenth of a second
            of one core, which would delay the first steps
Unblocked by add() and close()
Stops when  close() is called and everything is on disk, or when the disk refuses
"""

from __future__ import annotations

import math
import os
import queue
import socket
import threading
import time
from collections.abc import Callable, Mapping
from numbers import Real
from pathlib import Path
from typing import Any

from tianji.observe.account import to_account
from tianji.records import Metrics

_SINGLE = {
    "mean_return_100": "actor/mean_return_100",
    "episodes": "actor/episodes",
    "updates": "learner/updates",
    "version": "learner/version",
    "env_failures": "actor/env_failures",
    "restarts": "supervisor/restarts",
    "discarded_items": "buffer/discarded_items",
    "blocked_inserts": "buffer/blocked_inserts",
    "blocked_s": "buffer/blocked_s",
    "wall_s": "supervisor/wall_s",
}
_GROUPS = {
    "rates_per_s": {
        "produced": "actor/produced_steps_per_s",
        "received": "buffer/received_steps_per_s",
        "trained": "learner/trained_steps_per_s",
        "unique_trained": "learner/unique_trained_steps_per_s",
    },
    "lag_versions": {
        "mean": "buffer/lag_mean_versions",
        "p95": "buffer/lag_p95_versions",
        "max": "buffer/lag_max_versions",
    },
    "gather": {
        "rounds_per_s": "learner/rounds_per_s",
        "gradients_per_s": "actor/gradients_per_s",
        "discarded_share": "actor/discarded_gradient_share",
        "discarded_step_share": "actor/discarded_step_share",
    },
    "ratio": {"target": "buffer/ratio_target", "actual": "buffer/ratio_actual"},
}
_PER_ROLE = ("busy_share", "paced_share", "rss_bytes")
_ROOMS = {"learner": "learner", "evaluation": "evaluator"}
"""Groups of metrics whose names come from where they are made."""


def to_scalars(record: Metrics) -> dict[str, float]:
    """Return every finite number of a record that has a name here.

    >>> to_scalars({**NO_METRICS, "busy_share": {"actor-0": 0.5}})["actor-0/busy_share"]
    0.5
    """
    whole: Mapping[str, Any] = record
    found: dict[str, Any] = {name: whole[key] for key, name in _SINGLE.items()}
    for group, names in _GROUPS.items():
        found |= {name: whole.get(group, {}).get(key) for key, name in names.items()}
    for quantity in _PER_ROLE:
        found |= {f"{role}/{quantity}": value for role, value in whole[quantity].items()}
    by_env = record["returns_by_env"].items()
    found |= {f"actor/mean_return_100/{name}": value for name, value in by_env}
    found |= _time_scalars(record)
    for group, room in _ROOMS.items():
        found |= {f"{room}/{key}": value for key, value in whole.get(group, {}).items()}
    return {
        name: float(value)
        for name, value in found.items()
        if isinstance(value, Real) and math.isfinite(value)
    }


def _time_scalars(record: Metrics) -> dict[str, float]:
    """Return where the time went, as shares: of the learner's worker, and of the mean actor."""
    account = to_account(record)
    if account is None:
        return {}
    found: dict[str, float] = {}
    for room, side in (("actor", account.actors), ("learner", account.learner)):
        found |= {f"{room}/{part}_share": share for part, share in side.parts.items()}
        found |= {f"{room}/wait_{cause}_share": share for cause, share in side.waits.items()}
    return found


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

    def add(self, wall_time: float, step: int, scalars: Mapping[str, float] | None) -> None:
        """scalars: None makes TensorBoard forget what was added at this step and later, because
        the run repeats it."""
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
