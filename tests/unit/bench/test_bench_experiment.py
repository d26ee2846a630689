"""The experiment with real processes: what it reports, and that it leaves nothing behind."""

import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tianji.bench import experiment, message
from tianji.bench.experiment import idle_share, measure, measure_loaded
from tianji.bench.message import copy_speeds
from tianji.bench.point import Point
from tianji.bench.receiving import VirtualBuffer
from tianji.errors import ChannelError, UsageError

KEYS = {
    "size_bytes", "actors", "sample_time_s", "received", "collection_s", "messages_per_s",
    "mb_per_s", "memcpy_mb_per_s", "share_of_memcpy",
}  # fmt: skip
LONG_S = 60.0


@pytest.fixture(autouse=True)
def short_copies(monkeypatch):
    monkeypatch.setattr(message, "REPEAT_S", 0.001)


POINTS = {
    "one actor": Point(4096, 1, 0.0, 300),
    "three actors": Point(65536, 3, 0.0, 301),
    "copying": Point(4096, 2, 0.0, 300, is_copying=True),
    "checking": Point(4096, 2, 0.0, 300, is_checking=True),
    "sampling": Point(4096, 2, 0.002, 50),
}


@pytest.mark.parametrize("name", POINTS)
def test_a_point_is_measured(name):
    point = POINTS[name]
    found = measure(point)
    assert set(found) >= KEYS
    assert found["received"] == found["messages"] == point.num_messages
    asked = point.size_bytes, point.num_actors, point.sample_time_s, point.is_copying
    assert tuple(found[k] for k in ("size_bytes", "actors", "sample_time_s", "copying")) == asked
    rate = point.num_messages / found["collection_s"]
    assert found["messages_per_s"] == pytest.approx(rate)
    assert found["collection_s_per_10k"] == pytest.approx(10_000 / rate)
    assert found["mb_per_s"] == pytest.approx(rate * point.size_bytes / 1e6)
    share = found["mb_per_s"] / found["memcpy_mb_per_s"]
    assert found["share_of_memcpy"] == pytest.approx(share)
    assert found["sender_cpu_us"] > 0 and found["receiver_cpu_us"] > 0
    if point.sample_time_s:
        assert found["measured_sample_s"] >= point.sample_time_s
    else:
        assert found["measured_sample_s"] == 0.0


def test_what_cannot_be_run_starts_no_process(monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", None)
    with pytest.raises(UsageError, match="--actors is 0"):
        measure(Point(4096, 0))


class Processes:
    """The senders that were started; some may be started as something else."""

    def __init__(self, monkeypatch):
        self.started = []
        self.instead = {}
        popen = subprocess.Popen

        def start(command, **options):
            index = len(self.started)
            self.started.append(popen(self.instead.get(index, command), **options))
            return self.started[index]

        monkeypatch.setattr(subprocess, "Popen", start)

    def all_ended(self):
        return [process.returncode is not None for process in self.started]


@pytest.fixture
def processes(monkeypatch):
    return Processes(monkeypatch)


def num_open():
    return len(os.listdir("/proc/self/fd"))


def fails(error, match):
    """Measure three actors' many messages, in vain; nothing stays behind."""
    before = num_open()
    with pytest.raises(error, match=match):
        measure(Point(4096, 3, 0.0, 1_000_000))
    gc.collect()
    assert num_open() == before


def test_a_finished_experiment_leaves_nothing_behind(processes):
    measure(Point(4096, 1, 0.0, 100))
    gc.disable()  # what is not freed at once would pile up over a sweep
    try:
        before = num_open()
        measure(Point(4096, 2, 0.0, 100))
        assert num_open() == before
    finally:
        gc.enable()
    assert [process.returncode for process in processes.started] == [0, 0, 0]


def test_a_sender_that_does_not_start_is_named(processes):
    processes.instead[1] = [sys.executable, "-c", "raise SystemExit(7)"]
    fails(ChannelError, r"cannot be completed: actor-1 is gone \(ended with exit code 7\)\.")
    assert processes.all_ended() == [True] * 3


def at_the_third_tick(monkeypatch, act):
    tick, ticks = VirtualBuffer.tick, []

    def tick_and_act(buffer):
        ticks.append(None)
        if len(ticks) == 3:
            act()
        return tick(buffer)

    monkeypatch.setattr(VirtualBuffer, "tick", tick_and_act)


def test_a_sender_that_is_killed_on_the_way_is_named(monkeypatch, processes):
    at_the_third_tick(monkeypatch, lambda: os.kill(processes.started[2].pid, signal.SIGKILL))
    monkeypatch.setattr(VirtualBuffer, "is_complete", lambda _: False)
    fails(ChannelError, r"cannot be completed: actor-2 is gone \(killed by SIGKILL\)\.")
    assert processes.all_ended() == [True] * 3


def test_a_sender_that_ends_badly_after_the_last_message_is_named(monkeypatch, processes):
    receive = experiment.receive

    def receive_and_kill(*args):
        received = receive(*args)
        processes.started[0].kill()
        processes.started[0].wait()
        return received

    monkeypatch.setattr(experiment, "receive", receive_and_kill)
    with pytest.raises(ChannelError, match="measurement is incomplete: actor-0 is gone"):
        measure(Point(4096, 2, 0.0, 10))
    assert processes.all_ended() == [True, True]


def interrupt():
    raise KeyboardInterrupt


def test_an_interrupted_experiment_leaves_nothing_behind(monkeypatch, processes):
    at_the_third_tick(monkeypatch, interrupt)
    fails(KeyboardInterrupt, None)
    assert processes.all_ended() == [True] * 3


def children(pid):
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return []


def wait_until(is_so):
    deadline_s = time.monotonic() + LONG_S
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


# As at a terminal: what a shell starts in the background ignores Ctrl-C, and so would its children.
TIANJI = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from tianji.cli.main import main; sys.exit(main())"
)


def test_ctrl_c_at_a_terminal_ends_all_processes_without_a_word_from_them():
    words = ["bench", "comm", "--size", "4096", "--actors", "2", "--sample-time", "1"]
    command = subprocess.Popen(
        [sys.executable, "-c", TIANJI, *words],
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    wait_until(lambda: len(children(command.pid)) == 2)
    senders = children(command.pid)
    os.killpg(command.pid, signal.SIGINT)
    try:
        _, said = command.communicate(timeout=LONG_S)
    finally:
        command.kill()
    assert (command.returncode, said) == (130, "Interrupted.\n")
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in senders))


def test_copying_is_measured_in_bytes_per_second():
    assert max(copy_speeds(4096)) > 1e6  # others may keep the core for most of a repeat
    assert max(copy_speeds(16)) > 1e5


def test_several_runs_at_once_start_together_and_tell_what_a_message_took(monkeypatch):
    found = measure_loaded(Point(4096, 1, 0.0, 50), num_runs=3)
    assert set(found) == {"sender_cpu_us", "receiver_cpu_us", "measured_sample_s"}
    assert found["sender_cpu_us"] > 0 and found["receiver_cpu_us"] > 0


def test_a_run_that_fails_beside_others_does_not_hang_them(monkeypatch):
    monkeypatch.setattr(experiment, "run", interrupt)
    with pytest.raises(EOFError):
        measure_loaded(Point(4096, 1, 0.0, 50), num_runs=2)


def test_an_idle_receiver_is_measured_and_leaves_nothing_behind():
    gc.collect()
    before = num_open()
    assert 0.0 <= idle_share(num_actors=2, duration_s=0.02) <= 1.5
    gc.collect()
    assert num_open() == before
