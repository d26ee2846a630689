"""Records which functions of the package run in one process while the window is open.

The environment opens and closes the window (see `marked.py`): a byte in a file that all processes
of the run map. A profile function notes, for each call and each return, the function that begins
and the function that continues. A loop that called nothing but waits for its callee is not noted.
This file uses the standard library alone: every interpreter of the run imports it first.
"""

from __future__ import annotations

import atexit
import json
import mmap
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

FOLDER_VARIABLE = "STEP_PATH_FOLDER"
PACKAGE_VARIABLE = "STEP_PATH_PACKAGE"
ROOT_VARIABLE = "STEP_PATH_ROOT_PID"
BEFORE, OPEN, CLOSED = 0, 1, 2


class Window:
    """Says whether the run is being recorded, to all of its processes."""

    def __init__(self, folder: Path) -> None:
        with open(folder / "window", "r+b") as file:
            self._byte = mmap.mmap(file.fileno(), 1)

    @staticmethod
    def create(folder: Path) -> None:
        (folder / "window").write_bytes(bytes([BEFORE]))

    @property
    def state(self) -> int:
        return self._byte[0]

    @state.setter
    def state(self, state: int) -> None:
        self._byte[0] = max(state, self._byte[0])


class Recorder:
    """Notes functions of the package in order of their first visit."""

    def __init__(self, package: str, window: Window, done: Callable[[list[list[str]]], None]):
        self._prefix = package.rstrip("/") + "/"
        self._window = window
        self._done = done
        self._is_ours: dict[CodeType, bool] = {}
        self._visits: dict[tuple[str, str], None] = {}
        self._has_ended = False

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        state = self._window.state
        if state == BEFORE or self._has_ended:
            return
        if state == CLOSED:
            self.end()
            return
        if event == "call":
            self._note(frame.f_back)
            self._note(frame)
        elif event == "return":
            self._note(frame.f_back)

    def _note(self, frame: FrameType | None) -> None:
        if frame is None:
            return
        code = frame.f_code
        is_ours = self._is_ours.get(code)
        if is_ours is None:
            # The body of a module runs when the module is imported: no step passes it.
            is_ours = code.co_filename.startswith(self._prefix) and code.co_name != "<module>"
            self._is_ours[code] = is_ours
        if is_ours:
            self._visits.setdefault((code.co_filename[len(self._prefix) :], code.co_qualname))

    def end(self) -> None:
        if not self._has_ended:
            self._has_ended = True
            self._done([list(visit) for visit in self._visits])


def install() -> None:
    """Record this process from now on. Its file appears when the window closes."""
    folder = Path(os.environ[FOLDER_VARIABLE])
    root = os.environ.setdefault(ROOT_VARIABLE, str(os.getpid()))

    def write(visits: list[list[str]]) -> None:
        # The name of a worker is its last argument.
        process = "root" if root == str(os.getpid()) else sys.argv[-1]
        target = folder / f"{os.getpid()}.json"
        half = target.with_suffix(".half")
        half.write_text(json.dumps({"process": process, "visits": visits}))
        half.rename(target)

    recorder = Recorder(os.environ[PACKAGE_VARIABLE], Window(folder), write)
    atexit.register(recorder.end)
    threading.setprofile(recorder)
    sys.setprofile(recorder)
