"""Bells, and other processes, for the tests of channels."""

import multiprocessing
import os
import signal
import time
from contextlib import contextmanager
from pathlib import Path

from tianji.channels.memory import BELL_BYTES, Bell, Segment

LONG_S = 60.0  # never waited for in a test that passes
FORK = multiprocessing.get_context("fork")


def make_bells(count):
    segment = Segment.create("bells", BELL_BYTES * count)
    bells = [Bell(segment, BELL_BYTES * index) for index in range(count)]
    for bell in bells:
        bell.initialise()
    segment.close()  # the memory itself stays with the bells, and goes to forked processes
    return bells


def make_bell():
    return make_bells(1)[0]


def in_child(target, *args):
    child = FORK.Process(target=target, args=args)
    child.start()
    return child


def is_asleep(pid):
    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state == "S"


def wait_for(bell, is_there):
    """As a worker does: sleep on the bell until what one waits for is there."""
    deadline_s = time.monotonic() + LONG_S
    while True:
        bell.arm()
        if is_there():
            return
        assert time.monotonic() < deadline_s, "it never came"
        bell.wait(LONG_S)


def _hold_for_ever(take, bell, words):
    held = take()
    words[0] = 1 + (held is None)
    bell.ring()
    while True:
        signal.pause()


@contextmanager
def held_elsewhere(take):
    """While this lasts, another process has what `take()` returned; then it is killed."""
    bell, words = make_bell(), Segment.create("test", 8).words(0, 1)
    child = in_child(_hold_for_ever, take, bell, words)
    try:
        wait_for(bell, lambda: words[0])
        yield child
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.join(LONG_S)
