"""Writes checkpoints in a thread while training continues.

Takes       snapshots with copied data; at most one waits, and a newer one replaces it
Gives       checkpoint folders, and an event for each one that is written or fails
Waits for   the disk
Unblocked by submit() and close()
Stops when  close() is called and the last snapshot is written
"""

from __future__ import annotations

import errno
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeAlias

from tianji.checkpoint.load import list_checkpoints
from tianji.checkpoint.save import needed_bytes, rotate, write_checkpoint
from tianji.checkpoint.schema import Snapshot, folder_name
from tianji.errors import CheckpointError
from tianji.wording import sentence

WriterEvent: TypeAlias = Literal["checkpoint_written", "checkpoint_failed"]
OnEvent: TypeAlias = Callable[[WriterEvent, str, Snapshot], None]
"""(kind, text, snapshot), called in the writer's thread."""

WAIT_S = 1.0
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Writer:
    """The checkpoint writer of one run.

    >>> writer = Writer(run_dir, keep_last=3, on_event=print)
    >>> writer.submit(snapshot)  # returns at once
    >>> writer.close()  # waits for the last one
    """

    def __init__(self, run_dir: Path, keep_last: int, on_event: OnEvent) -> None:
        self._run_dir = run_dir
        self._keep_last = keep_last
        self._on_event = on_event
        self._changed = threading.Condition()
        self._waiting: Snapshot | None = None
        self._closing = False
        self._thread: threading.Thread | None = None
        self.last_written: Path | None = None
        self.last_error: str | None = None
        """The reason why the newest snapshot is not on disk; None if it is."""

    def submit(self, snapshot: Snapshot) -> None:
        """Write this snapshot soon; an older one that still waits is dropped."""
        with self._changed:
            if self._closing:
                raise CheckpointError("The checkpoint writer is closed.")
            self._waiting = snapshot
            self._changed.notify()
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._work, name="checkpoint", daemon=True)
                self._thread.start()

    def finds_loss(self) -> bool:
        """Return whether the newest checkpoint was deleted.

        True once for each loss, and only when the run folder exists again.
        """
        written = self.last_written
        if written is None or written.exists() or not self._run_dir.is_dir():
            return False
        self.last_written = None
        return True

    def close(self, while_waiting: Callable[[], None] = lambda: None) -> None:
        """Wait until the last snapshot is written or has failed.

        while_waiting: called from time to time, because a slow disk may take long.
        """
        with self._changed:
            self._closing = True
            self._changed.notify()
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(WAIT_S)
            while_waiting()

    def _work(self) -> None:
        while (snapshot := self._next()) is not None:
            try:
                self._write(snapshot)
            except (OSError, MemoryError, CheckpointError) as error:
                self.last_error = _in_words(self._run_dir, snapshot, error, self._is_last)
                self._on_event("checkpoint_failed", self.last_error, snapshot)

    @property
    def _is_last(self) -> bool:
        """No snapshot follows the one in work."""
        return self._closing and self._waiting is None

    def _next(self) -> Snapshot | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting is not None or self._closing)
            snapshot, self._waiting = self._waiting, None
            return snapshot

    def _write(self, snapshot: Snapshot) -> None:
        started = time.monotonic()
        self.last_written = write_checkpoint(self._run_dir, snapshot)
        self.last_error = None
        rotate(self._run_dir, self._keep_last)
        size = sum(file.stat().st_size for file in self.last_written.iterdir())
        took_s = time.monotonic() - started
        self._on_event(
            "checkpoint_written",
            f"Checkpoint {self.last_written.name}: {to_size(size)} in {took_s:.2f} s.",
            snapshot,
        )


def _in_words(run_dir: Path, snapshot: Snapshot, error: Exception, is_last: bool) -> str:
    start = f"Checkpoint {folder_name(snapshot.version)} was not written"
    older = list_checkpoints(run_dir)
    kept = f"newest on disk is {older[-1].name}" if older else "run has no checkpoint on disk"
    end = f"The {kept}." if is_last else f"Training continues; the {kept}."
    if not (isinstance(error, OSError) and error.errno in _FULL):
        cause = f"{start}: {str(error) or type(error).__name__}"
        return f"{sentence(cause)} {end}"
    free = shutil.disk_usage(run_dir).free
    return (
        f"{start}: the disk of {run_dir} is full or over its quota ({error.strerror}). The "
        f"checkpoint needs {to_size(needed_bytes(snapshot))}; {to_size(free)} are free. {end} "
        "Free some space, or save less with checkpoint.keep_last or checkpoint.replay=false."
    )


def to_size(num_bytes: int) -> str:
    """Return a number of bytes as text with a unit.

    >>> to_size(3_400_000)
    '3.4 MB'
    """
    if num_bytes < 1000:
        return f"{num_bytes} bytes"
    size, units = num_bytes / 1000, iter(("kB", "MB", "GB", "TB"))
    unit = next(units)
    while size >= 999.5:
        size, unit = size / 1000, next(units)
    return f"{size:.1f} {unit}" if size < 99.95 else f"{size:.0f} {unit}"
