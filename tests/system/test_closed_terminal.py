"""The window of a run is closed while the live display is on."""

import fcntl
import os
import signal
import subprocess
import sys
import termios
import threading

from tests.system.commands import DEADLINE_S, FOREVER, SMALL, Command, assert_nothing_is_left
from tianji.observe.summary import read_status


def _take_terminal():
    """Before the command starts, with SIGHUP as a terminal gives it, not as `nohup` does."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class InTerminal(Command):
    """`tianji ...` as the leader of a terminal session of its own."""

    def __init__(self, folder, *words):
        self.folder, self.run_dir = folder, folder / "runs" / "run"
        self.leader, follower = os.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tianji", *words],
            cwd=folder,
            stdin=follower,
            stdout=follower,
            stderr=follower,
            env={**os.environ, "TERM": "xterm"},
            start_new_session=True,
            preexec_fn=_take_terminal,  # noqa: PLW1509
        )
        os.close(follower)
        self._is_open = True
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        """A terminal that nobody reads would make the writer wait."""
        while self._is_open and os.read(self.leader, 1 << 16):
            pass

    def close_window(self):
        self._is_open = False
        self._reader.join()  # the next drawing ends it: closing what is being read would not do
        os.close(self.leader)


def test_a_run_whose_terminal_is_closed_saves_and_sums_up(tmp_path):
    command = InTerminal(tmp_path, "train", *SMALL, *FOREVER, "--engine", "inline")
    command.wait_for_version(5)
    command.close_window()
    command.process.send_signal(signal.SIGHUP)  # the kernel has sent one; shells send another
    assert command.process.wait(DEADLINE_S) == 130
    assert_nothing_is_left(tmp_path)
    summary = command.summary()
    assert summary["stopped_because"] == "interrupted"
    assert summary["checkpoint"].endswith(f"v{summary['version']:08d}"), "the last version is saved"
    assert (command.run_dir / "curve.png").exists()
    assert read_status(command.run_dir).state == "interrupted"
