"""A terminal that is closed and a pipe that nobody reads cost words, and nothing else."""

import errno
import io
import os
import sys

import pytest

from tests.unit.display.test_display import make_config, make_record
from tianji.cli.main import main
from tianji.display.display import Display
from tianji.display.stream import unfailing


@pytest.fixture
def closed_terminal(monkeypatch):
    """Standard error is a terminal whose window was closed."""
    leader, follower = os.openpty()
    stream = os.fdopen(follower, "w")
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    yield lambda: os.close(leader)
    stream.close()


@pytest.fixture
def unread_pipe(monkeypatch):
    read_fd, write_fd = os.pipe()
    stream = os.fdopen(write_fd, "w")
    monkeypatch.setattr(sys, "stderr", stream)
    yield lambda: os.close(read_fd)
    stream.close()


@pytest.mark.parametrize("kind", ["closed_terminal", "unread_pipe"])
@pytest.mark.parametrize("mode", ["live", "plain", "off"])
def test_a_display_goes_on_when_nobody_can_see_it(request, kind, mode):
    cut = request.getfixturevalue(kind)
    display = Display(make_config(), mode)
    display.start()
    display.update(make_record())
    cut()
    for _ in range(3):
        display.update(make_record())
        display.event("it happened", "error")
    display.stop()


@pytest.mark.parametrize("kind", ["closed_terminal", "unread_pipe"])
def test_a_command_keeps_its_exit_code_when_nobody_can_see_it(request, kind):
    request.getfixturevalue(kind)()
    assert main(["eval", "no-such-run"]) == 2


@pytest.mark.parametrize(
    ("number", "is_dropped_for_good"),
    [(errno.EIO, True), (errno.EPIPE, True), (errno.EAGAIN, False), (errno.ENOSPC, False)],
)
def test_only_a_reader_that_is_gone_is_given_up(tmp_path, number, is_dropped_for_good):
    with (tmp_path / "words").open("w") as file:
        failing = unfailing(Failing(file, number))
        assert failing.write("lost") == 4
        failing.flush()
        file.write("kept")
    assert (tmp_path / "words").read_text() == ("" if is_dropped_for_good else "kept")


class Failing(io.StringIO):
    def __init__(self, file, number):
        super().__init__()
        self._file, self._number = file, number

    def fileno(self):
        return self._file.fileno()

    def write(self, text):
        raise OSError(self._number, os.strerror(self._number))

    flush = lambda self: self.write("")  # noqa: E731
