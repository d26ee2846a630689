"""Holds the folder of a running run: locks it, recreates it if it is lost, keeps plan.json."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Self

from tianji.checkpoint.durable import replace_json
from tianji.config.files import load_config, save_config
from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.errors import TianjiError, UsageError
from tianji.run_folder.paths import CONFIG_FILE, LOCK_FILE, PLAN_FILE


def read_plan(run_dir: Path) -> RunPlan:
    path = run_dir / PLAN_FILE
    try:
        return RunPlan.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise UsageError(f"Run '{run_dir}' has no {PLAN_FILE}: it never started.") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"'{path}' is not a valid plan: {error}") from error


class PlanFile:
    """Rewrites plan.json when the plan changes."""

    def __init__(self, run_dir: Path, plan: RunPlan) -> None:
        self._path = run_dir / PLAN_FILE
        self._plan = plan

    def save(self) -> None:
        replace_json(self._path, self._plan.model_dump(mode="json"))

    def update(self, plan: RunPlan) -> None:
        self._plan = plan
        with contextlib.suppress(OSError):  # on a full disk the old file stays
            self.save()

    def complete(self, built: Mapping[str, Any]) -> None:
        """Add the values that are known once the network is built."""
        self.update(self._plan.model_copy(update=built))


_DELETED = " (deleted)"
"""The kernel appends this to the path of an open folder that was deleted."""


def is_in_use(path: Path) -> bool:
    """Return whether a process holds the lock of a run folder now."""
    try:
        with RunFolder(path):
            return False
    except UsageError:
        return True


class RunFolder:
    """A context that locks a run folder, so that no second process deletes its checkpoints.

    >>> with RunFolder(Path("runs/mine")) as folder:
    ...     folder.look(config, plan_file)  # from time to time
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_ours = True
        """False once another run uses the path; nothing may be written there then."""
        self._held = contextlib.ExitStack()
        self._lock: IO[str] | None = None
        self._descriptor = -1
        self._is_missing = False

    def __enter__(self) -> Self:
        self._hold()
        return self

    def __exit__(self, *_error: object) -> None:
        self._held.close()

    def _hold(self) -> None:
        with contextlib.ExitStack() as held:
            lock = held.enter_context((self.path / LOCK_FILE).open("w"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(f"Run {self.path} is already running.") from None
            descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
            held.callback(os.close, descriptor)
            self._held.close()
            self._held, self._lock, self._descriptor = held.pop_all(), lock, descriptor

    def look(self, config: RunConfig, plan_file: PlanFile) -> str:
        """Recreate the folder if it was deleted or moved; return a sentence about it, or "".

        Raises TianjiError if another run uses the path.
        """
        if not self.is_ours or self._is_there():
            return ""
        what = self._what_happened()
        try:
            self._recreate(config, plan_file)
        except OSError as error:
            was_missing, self._is_missing = self._is_missing, True
            return "" if was_missing else f"{what} It cannot be recreated: {error}. {UNSAVED}"
        self._is_missing = False
        return f"{what} {RECREATED}"

    def _is_there(self) -> bool:
        """Return whether our folder with its config.yaml is still at the path."""
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

    def _recreate(self, config: RunConfig, plan_file: PlanFile) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        if not self._is_a_copy(config):
            raise self._taken()
        lock = self.path / LOCK_FILE
        assert self._lock is not None, "look() needs a locked folder"
        if not (lock.exists() and os.path.samestat(lock.stat(), os.fstat(self._lock.fileno()))):
            try:
                self._hold()
            except UsageError as error:
                raise self._taken() from error
        save_config(config, self.path / CONFIG_FILE)
        plan_file.save()

    def _is_a_copy(self, config: RunConfig) -> bool:
        """Return whether the path holds a new folder or a copy of ours."""
        if not (self.path / CONFIG_FILE).exists():
            return True
        try:
            return load_config(self.path / CONFIG_FILE) == config
        except UsageError:
            return False

    def _taken(self) -> TianjiError:
        """Return the error for a path that another run uses; nothing may be written there."""
        self.is_ours = False
        return TianjiError(
            f"{self._what_happened()} Another run uses its path now, so this run cannot be saved "
            "and stops. Its earlier checkpoints are in the moved folder, if it still exists."
        )


RECREATED = (
    "It was recreated with the settings, the plan and the logs; a new checkpoint follows soon. "
    "Training continues."
)
UNSAVED = "Nothing is saved until then. Training continues."
