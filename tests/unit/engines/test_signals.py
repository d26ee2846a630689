"""Ctrl-C once, Ctrl-C twice, and everything as it was afterwards."""

import os
import select
import signal
import threading
from itertools import count

import pytest

from tianji.channels.orders import Stop
from tianji.engines.signals import TWICE_S, catch_signals


@pytest.fixture(autouse=True)
def unchanged_handlers():
    """A test that leaves a handler behind would change the tests after it."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    assert {number: signal.getsignal(number) for number in before} == before


def is_readable(fd):
    return bool(select.select([fd], [], [], 0)[0])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_asks_to_finish_the_second_to_stop_now_and_the_third_breaks_off(number):
    with catch_signals(count(1).__next__) as stop:
        assert (stop.level, is_readable(stop.fd)) == (Stop.NO, False)
        signal.raise_signal(number)
        assert (stop.level, is_readable(stop.fd)) == (Stop.FINISH, True)
        signal.raise_signal(number)
        assert stop.level == Stop.NOW
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)


def test_a_signal_that_is_sent_to_the_process_and_to_its_group_asks_once():
    """As `timeout -s INT` does: the second one must not stop the run without saving."""
    now_s = [100.0]
    with catch_signals(lambda: now_s[0]) as stop:
        for _ in range(3):
            signal.raise_signal(signal.SIGINT)
        assert (stop.level, "saving" in stop.note) == (Stop.FINISH, True)
        now_s[0] += 2 * TWICE_S
        signal.raise_signal(signal.SIGINT)
        assert (stop.level, "not saved" in stop.note) == (Stop.NOW, True)


@pytest.fixture
def hangs_up():
    """SIGHUP as a terminal gives it; under `nohup` it would be ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hangs_up")
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGUSR1])
def test_a_closed_terminal_or_a_warning_asks_to_finish_however_often_it_comes(number):
    with catch_signals() as stop:
        for _ in range(4):
            signal.raise_signal(number)
            assert (stop.level, is_readable(stop.fd)) == (Stop.FINISH, True)
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(number)
        assert stop.level == Stop.NOW


def test_a_run_under_nohup_does_not_hear_of_a_closed_terminal():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with catch_signals() as stop:
            signal.raise_signal(signal.SIGHUP)
            assert stop.level == Stop.NO
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_whoever_sleeps_on_it_is_woken_for_every_signal():
    with catch_signals() as stop:
        stop.ask()
        os.read(stop.fd, 64)
        assert not is_readable(stop.fd)
        stop.ask()
        assert is_readable(stop.fd)


def test_signals_mean_what_they_did_when_the_run_is_over():
    seen = []
    before = signal.signal(signal.SIGTERM, lambda *_: seen.append("mine"))
    try:
        with pytest.raises(ValueError, match="failed"), catch_signals() as stop:
            raise ValueError("failed")
        signal.raise_signal(signal.SIGTERM)
        assert seen == ["mine"]
        assert stop.level == Stop.NO
    finally:
        signal.signal(signal.SIGTERM, before)


def test_its_descriptors_are_closed():
    with catch_signals() as stop:
        pass
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(stop.fd)


def test_outside_the_main_thread_signals_keep_their_meaning():
    levels = []

    def run():
        with catch_signals() as stop:
            levels.append(stop.level)
            handler.append(signal.getsignal(signal.SIGINT))

    handler = []
    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert levels == [Stop.NO]
    assert handler == [before]
