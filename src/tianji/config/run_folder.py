"""The folder of a run while the run goes on: locked, and made again where it is gone."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from tianji.config.files import load_config, save_config
from tianji.config.plan_file import PlanFile
from tianji.config.run import RunConfig
from tianji.config.runs import CONFIG_FILE, LOCK_FILE
from tianji.errors import TianjiError, UsageError

_DELETED = " (deleted)"
"""What the kernel writes behind the path of an open folder that is gone."""


class RunFolder:
    """Two processes in one run folder would delete each other's checkpoints: a context that holds
    its lock.

    >>> with RunFolder(Path("runs/mine")) as folder:
    ...     folder.look(config, plan_file)  # now and then
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_ours = True
        """False once another run has taken the path: nothing may be written there."""
        self._lock: IO[str] | None = None
        self._descriptor = -1
        self._is_missing = False

    def __enter__(self) -> Self:
        self._hold()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._release()

    def _hold(self) -> None:
        lock = (self.path / LOCK_FILE).open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        except BlockingIOError:
            lock.close()
            raise UsageError(f"Run {self.path} is running already.") from None
        except OSError:  # the folder was deleted in between
            lock.close()
            raise
        self._release()
        self._lock, self._descriptor = lock, descriptor

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            os.close(self._descriptor)
            self._lock = None

    def look(self, config: RunConfig, plan_file: PlanFile) -> str:
        """Make the folder again where it was deleted or moved; returns what happened, in words, ""
        where nothing did. TianjiError where another run has taken its place."""
        if not self.is_ours or self._is_there():
            return ""
        what = self._what_happened()
        try:
            self._make_again(config, plan_file)
        except OSError as error:
            was_missing, self._is_missing = self._is_missing, True
            return "" if was_missing else f"{what} It cannot be made again: {error}. {UNSAVED}"
        self._is_missing = False
        return f"{what} {MADE_AGAIN}"

    def _is_there(self) -> bool:
        """config.yaml is what makes a folder a run's: `rm -r` may have got only so far."""
        try:
            os.stat(self.path / CONFIG_FILE)
            return os.path.samestat(os.stat(self.path), os.fstat(self._descriptor))
        except OSError:
            return False

    def _what_happened(self) -> str:
        now_at = os.readlink(f"/proc/self/fd/{self._descriptor}")
        if now_at.endswith(_DELETED):
            return f"The run folder {self.path} was deleted."
        if now_at == str(self.path.resolve()):
            return f"Files in the run folder {self.path} were deleted."
        return f"The run folder {self.path} was moved to {now_at}."

    def _make_again(self, config: RunConfig, plan_file: PlanFile) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        if not self._is_a_copy(config):
            raise self._taken()
        if not self._holds_lock_at_path():
            try:
                self._hold()
            except UsageError as error:
                raise self._taken() from error
        save_config(config, self.path / CONFIG_FILE)
        plan_file.save()

    def _holds_lock_at_path(self) -> bool:
        path = self.path / LOCK_FILE
        assert self._lock is not None, "look() is for a folder that is held"
        return path.exists() and os.path.samestat(path.stat(), os.fstat(self._lock.fileno()))

    def _is_a_copy(self, config: RunConfig) -> bool:
        """A new folder, or a copy of ours that was put in its place, is as good as ours."""
        if not (self.path / CONFIG_FILE).exists():
            return True
        try:
            return load_config(self.path / CONFIG_FILE) == config
        except UsageError:
            return False

    def _taken(self) -> TianjiError:
        """The error for a folder of another run, in which nothing may be written from now on."""
        self.is_ours = False
        return TianjiError(
            f"{self._what_happened()} Another run has taken its place, so this one cannot be "
            "saved: it stops. Its earlier checkpoints are where its folder is now, if anywhere."
        )


MADE_AGAIN = (
    "It was made again, with the settings, the plan and the logs; a new checkpoint follows soon. "
    "Training goes on."
)
UNSAVED = "Nothing is saved until it can be. Training goes on."
