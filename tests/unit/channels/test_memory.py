"""Segments that leave nothing behind, semaphores that wake, and a bell that costs nothing."""

import errno
import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from tianji.channels import memory
from tianji.channels.memory import SEMAPHORE_BYTES, Bell, Segment, Semaphore, fence
from tianji.errors import ChannelError

LONG_S = 60.0  # never waited for in a test that passes
FORK = multiprocessing.get_context("fork")


def semaphores(count=1):
    segment = Segment.create("test", SEMAPHORE_BYTES * count)
    made = [Semaphore(segment, i * SEMAPHORE_BYTES) for i in range(count)]
    for semaphore in made:
        semaphore.initialise()
    return made


def in_child(target, *args):
    child = FORK.Process(target=target, args=args)
    child.start()
    return child


def test_a_segment_is_new_zeroed_memory_of_the_size_asked_for():
    segment = Segment.create("test", 10_000)
    assert segment.nbytes == os.fstat(segment.fd).st_size == 10_000
    assert bytes(segment.memory) == bytes(10_000)


def test_all_of_a_segment_is_set_aside_at_once():
    segment = Segment.create("test", 1 << 20)
    assert os.fstat(segment.fd).st_blocks * 512 >= 1 << 20


def test_whoever_has_the_descriptor_sees_the_same_memory():
    segment = Segment.create("test", 4096)
    other = Segment.attach(os.dup(segment.fd))
    segment.words(128, 2)[1] = -7
    assert other.nbytes == 4096
    assert other.words(128, 2).tolist() == [0, -7]
    assert other.words(136, 1)[0] == -7


def test_a_segment_has_no_name_in_any_file_system():
    segment = Segment.create("nameless", 4096)
    assert os.readlink(f"/proc/self/fd/{segment.fd}").startswith("/memfd:tianji-nameless")
    assert not list(Path("/dev/shm").glob("*nameless*"))


@pytest.mark.parametrize("refusal", [errno.ENOMEM, errno.ENOSPC])
def test_memory_that_is_refused_is_told_in_words_and_leaks_no_descriptor(monkeypatch, refusal):
    def refuse(fd, offset, nbytes):
        raise OSError(refusal, "refused")

    monkeypatch.setattr(memory.os, "posix_fallocate", refuse)
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(ChannelError, match=r"No memory for slots: 3\.0 MiB.*smaller replay"):
        Segment.create("slots", 3 << 20)
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_any_other_refusal_is_passed_on_as_it_is(monkeypatch):
    def refuse(fd, offset, nbytes):
        raise OSError(errno.EPERM, "not here")

    monkeypatch.setattr(memory.os, "posix_fallocate", refuse)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(PermissionError):
        Segment.create("slots", 4096)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_semaphore_counts():
    (semaphore,) = semaphores()
    assert not semaphore.try_wait()
    for _ in range(3):
        semaphore.post()
    assert semaphore.try_wait()
    assert semaphore.drain() == 2
    assert not semaphore.try_wait()


def test_two_semaphores_of_one_segment_are_apart():
    one, other = semaphores(2)
    one.post()
    assert not other.try_wait()
    assert one.try_wait()


def test_waiting_takes_one_count_and_says_when_the_time_was_over():
    (semaphore,) = semaphores()
    semaphore.post()
    assert semaphore.wait(LONG_S)
    assert not semaphore.wait(0.001)
    assert not semaphore.wait(0.0)


def _write_and_post(segment, go, done):
    words = segment.words(SEMAPHORE_BYTES * 2, 1000)
    go.wait(LONG_S)
    for index in range(1000):
        words[index] = index + 1
    done.post()


def test_what_was_written_before_a_post_is_seen_after_the_wait_in_another_process():
    segment = Segment.create("test", SEMAPHORE_BYTES * 2 + 8000)
    go, done = Semaphore(segment, 0), Semaphore(segment, SEMAPHORE_BYTES)
    go.initialise()
    done.initialise()
    child = in_child(_write_and_post, segment, go, done)
    go.post()
    assert done.wait(LONG_S)
    assert segment.words(SEMAPHORE_BYTES * 2, 1000).tolist() == list(range(1, 1001))
    child.join(LONG_S)


def _take_and_die(taken):
    taken.wait(LONG_S)
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_process_leaves_no_semaphore_locked():
    (semaphore,) = semaphores()
    child = in_child(_take_and_die, semaphore)
    semaphore.post()
    child.join(LONG_S)
    assert child.exitcode == -signal.SIGKILL
    semaphore.post()
    assert semaphore.wait(LONG_S)


def test_other_threads_run_while_one_waits():
    go, done = semaphores(2)
    woken = []

    def sleep_and_answer():
        woken.append(go.wait(LONG_S))
        done.post()

    sleeper = threading.Thread(target=sleep_and_answer)
    sleeper.start()
    go.post()
    assert done.wait(LONG_S)
    sleeper.join(LONG_S)
    assert woken == [True]


def test_a_signal_does_not_end_a_wait():
    (semaphore,) = semaphores()
    before = signal.signal(signal.SIGALRM, lambda *_: semaphore.post())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        assert semaphore.wait(LONG_S), "the wait ended with the signal, before what it waits for"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def _sleep_on(bell, answer):
    woken = bell.wait(LONG_S)
    if woken:
        answer.post()


def is_asleep(pid):
    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state == "S"


def test_a_ring_wakes_a_worker_that_sleeps():
    rung, answer = semaphores(2)
    bell = Bell(rung)
    child = in_child(_sleep_on, bell, answer)
    while not is_asleep(child.pid):
        assert child.is_alive()
    bell.ring()
    assert answer.wait(LONG_S)
    child.join(LONG_S)


def test_rings_before_the_wait_are_not_lost_and_count_as_one():
    (semaphore,) = semaphores()
    bell = Bell(semaphore)
    for _ in range(5):
        bell.ring()
    assert bell.wait(LONG_S)
    assert not bell.wait(0.0), "the worker is woken again for rings it has answered"


def test_a_bell_that_nobody_rings_says_so():
    (semaphore,) = semaphores()
    assert not Bell(semaphore).wait(0.001)


def test_waiting_costs_no_processor_time():
    (semaphore,) = semaphores()
    bell = Bell(semaphore)
    before_s = time.thread_time()
    assert not bell.wait(0.3)
    used_s = time.thread_time() - before_s
    assert used_s < 0.03, "a wait that spins or polls uses most of the 0.3 s"


def test_a_fence_leaves_nothing_behind():
    for _ in range(100):
        fence()
    assert not memory._FENCE.try_wait()
