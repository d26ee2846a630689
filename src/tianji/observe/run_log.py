"""The files that grow during a run: metrics.jsonl, events.jsonl and TensorBoard events.

Nothing here may stop a run: a full disk costs lines, which are counted and reported.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from tianji.checkpoint.durable import to_plain
from tianji.observe.tensorboard import to_scalars
from tianji.records import NO_METRICS, Metrics, with_defaults
from tianji.run_folder.paths import METRICS_FILE

if TYPE_CHECKING:
    from tianji.config.run import RunConfig
    from tianji.observe.tensorboard import TensorBoardLog

LOST_FILE = "metrics-lost.jsonl"
"""Records of what a run did after the checkpoint that it went back to."""
EVENTS_FILE = "events.jsonl"
TAIL_BYTES = 64 << 10
"""Size of the first read from the end of a file; a record is a few kilobytes."""


class RunLog:
    """One per run, in the process that supervises it.

    >>> log = RunLog(run_dir, config, on_problem=print)
    >>> log.metrics(metrics)
    >>> log.event("restart", "actor-1", "killed by signal 9; started again")
    >>> log.close()
    """

    def __init__(
        self, run_dir: Path, config: RunConfig, on_problem: Callable[[str], None] | None = None
    ) -> None:
        self._run_dir = run_dir
        self._on_problem = on_problem or (lambda _text: None)
        self._metrics = JsonLines(run_dir / METRICS_FILE, self._on_problem)
        self._events = JsonLines(run_dir / EVENTS_FILE, self._on_problem)
        self._with_tensorboard = config.observe.tensorboard
        self._tensorboard: TensorBoardLog | None = None

    def metrics(self, record: Metrics) -> None:
        """Append one record; its quantities become TensorBoard scalars over environment steps."""
        self._metrics.append({"time": _now(), **record})
        if self._with_tensorboard:
            scalars = to_scalars(record)
            self._open_tensorboard().add(time.time(), int(record["env_steps"]), scalars)

    def go_back(self, version: int, env_steps: int) -> int:
        """Move the records after this point to another file, because the run continues from there
        and counters in metrics.jsonl must not fall; return how many there were."""
        moved = self._metrics.move_tail(
            lambda r: (r.get("version") or 0) > version or (r.get("env_steps") or 0) > env_steps,
            self._run_dir / LOST_FILE,
        )
        if moved and self._with_tensorboard:
            self._open_tensorboard().add(time.time(), env_steps + 1, None)
        return moved

    def _open_tensorboard(self) -> TensorBoardLog:
        if self._tensorboard is None:
            from tianji.observe.tensorboard import TensorBoardLog

            self._tensorboard = TensorBoardLog(self._run_dir, self._on_problem)
        return self._tensorboard

    def event(self, kind: str, role: str, text: str) -> None:
        """Append something that happened once: a restart, a checkpoint, a failure."""
        self._events.append({"time": _now(), "kind": kind, "role": role, "text": text})

    def reopen(self) -> None:
        """Make the files again in a run folder that was made again. TensorBoard starts over with
        the next record."""
        self._metrics.reopen()
        self._events.reopen()
        self._close_tensorboard()

    def close(self) -> None:
        self._metrics.close()
        self._events.close()
        self._close_tensorboard()

    def _close_tensorboard(self) -> None:
        if self._tensorboard is not None:
            self._tensorboard.close()
            self._tensorboard = None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class JsonLines:
    """A file of one JSON object per line, each on disk as soon as it is appended."""

    def __init__(self, path: Path, on_problem: Callable[[str], None]) -> None:
        self._path = path
        self._on_problem = on_problem
        self._file: IO[bytes] | None = None
        self._lock = threading.Lock()
        self._torn = False
        self.lost_lines = 0

    def append(self, record: Mapping[str, Any]) -> None:
        line = json.dumps(to_plain(record), allow_nan=False).encode() + b"\n"
        with self._lock:
            try:
                self._write(line)
            except OSError as error:
                self._torn = True
                self.lost_lines += 1
                if self.lost_lines == 1:
                    self._on_problem(f"{self._path.name} loses lines: {error.strerror}.")

    def _write(self, line: bytes) -> None:
        if self._file is None:
            self._file = self._path.open("ab+", buffering=0)
            end = self._file.seek(0, os.SEEK_END)
            self._file.seek(max(0, end - 1))
            self._torn = self._file.read(1) not in (b"", b"\n")  # a process died in a line
        data = b"\n" + line if self._torn else line
        written = self._file.write(data)
        self._torn = written != len(data)

    def reopen(self) -> None:
        """Write to the file that has the path now. If it was deleted or moved, a new one starts
        with the lines of the file that is still open, as soon as the folder exists again."""
        with self._lock:
            old = self._file
            if old is None or not self._path.parent.is_dir():
                return
            self._file = None
            try:
                with Path(f"/proc/self/fd/{old.fileno()}").open("rb") as lines:
                    if not self._path.exists():
                        with self._path.open("xb") as new:
                            shutil.copyfileobj(lines, new)
            except OSError as error:
                self._on_problem(f"{self._path.name} starts over: {error.strerror}.")
            finally:
                old.close()

    def move_tail(self, is_lost: Callable[[dict[str, Any]], bool], to: Path) -> int:
        """Move the lost records at the end to another file; return how many."""
        with self._lock:
            try:
                moved = _move_tail(self._path, is_lost, to) if self._path.exists() else 0
            except OSError as error:
                self._on_problem(f"{self._path.name} keeps lost records: {error.strerror}.")
                return 0
            self._torn = self._torn and not moved
            return moved

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None


def read_last(path: Path) -> dict[str, Any] | None:
    """Return the newest complete record of a file of JSON lines; None without one."""
    if not path.exists():
        return None
    with path.open("rb") as file:
        return next((record for _, record in _from_the_end(file) if record is not None), None)


def last_metrics(run_dir: Path) -> Metrics | None:
    """Return the newest record of a run's metrics; None before the first."""
    found = read_last(run_dir / METRICS_FILE)
    return None if found is None else cast("Metrics", with_defaults(found, NO_METRICS))


def all_metrics(run_dir: Path) -> Iterator[Metrics]:
    """Yield the records of a run's metrics, oldest first."""
    for found in read_lines(run_dir / METRICS_FILE):
        yield cast("Metrics", with_defaults(found, NO_METRICS))


def highest_version(run_dir: Path) -> int:
    """Return the highest version in the records of a run, lost ones included; -1 without one."""
    last = [read_last(run_dir / name) or {} for name in (METRICS_FILE, LOST_FILE)]
    return max(int(record.get("version", -1)) for record in last)


def _from_the_end(file: IO[bytes]) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Yield the lines of a file from the last to the first: where each begins, and its record, or
    None if it is torn."""
    start = end = file.seek(0, os.SEEK_END)
    rest, size = b"", TAIL_BYTES
    while start:
        begin = max(0, start - size)
        file.seek(begin)
        lines = (file.read(start - begin) + rest).splitlines(keepends=True)
        rest = lines.pop(0) if begin else b""  # its beginning may lie before
        for line in reversed(lines):
            end -= len(line)
            yield end, _parse(line)
        start, size = begin, 8 * size


def _move_tail(path: Path, is_lost: Callable[[dict[str, Any]], bool], to: Path) -> int:
    with path.open("r+b") as file:
        cut, moved = file.seek(0, os.SEEK_END), 0
        for begin, record in _from_the_end(file):
            if record is not None and not is_lost(record):
                break
            cut, moved = begin, moved + 1
        file.seek(cut)
        if moved:
            with to.open("ab") as other:
                shutil.copyfileobj(file, other)
            file.truncate(cut)
    return moved


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a file of JSON lines; torn lines are skipped."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            if (record := _parse(line)) is not None:
                yield record


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None
