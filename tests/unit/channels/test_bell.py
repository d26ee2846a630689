"""A bell wakes whoever sleeps, loses nothing once it is armed, and costs nothing otherwise."""

import os
import signal
import threading
import time

import pytest

from tests.unit.channels.ends import LONG_S, in_child, is_asleep, make_bell, make_bells, wait_for
from tianji.channels import memory
from tianji.channels.memory import Segment


def armed():
    bell = make_bell()
    bell.arm()
    return bell


@pytest.fixture
def posts(monkeypatch):
    """The system is asked for a wake-up this often."""
    made = []
    post = memory._instant.sem_post

    def count(address):
        made.append(address)
        return post(address)

    monkeypatch.setattr(memory._instant, "sem_post", count)
    return made


def test_a_ring_after_arming_and_before_the_wait_is_not_lost():
    bell = armed()
    bell.ring()
    assert bell.wait(LONG_S)


def test_rings_count_as_one():
    bell = armed()
    for _ in range(5):
        bell.ring()
    assert bell.wait(LONG_S)
    bell.arm()
    assert not bell.wait(0.0), "the worker is woken again for rings it has answered"


def test_only_the_first_ring_after_arming_makes_a_post(posts):
    bell = armed()
    for _ in range(5):
        bell.ring()
    assert len(posts) == 1


def test_a_ring_while_nobody_is_about_to_sleep_makes_no_post(posts):
    bell = make_bell()
    bell.ring()
    assert posts == []
    assert not bell.wait(0.0)


def test_a_bell_can_be_armed_and_rung_again_and_again():
    bell = make_bell()
    for _ in range(10):
        bell.arm()
        bell.ring()
        assert bell.wait(LONG_S)


def test_a_bell_that_nobody_rings_says_so():
    bell = armed()
    assert not bell.wait(0.001)
    assert not bell.wait(0.0)


def test_a_bell_stays_armed_when_the_time_was_over():
    bell = armed()
    assert not bell.wait(0.001)
    bell.ring()
    assert bell.wait(LONG_S)


def test_two_bells_of_one_segment_are_apart():
    one, other = make_bells(2)
    one.arm()
    other.arm()
    one.ring()
    assert not other.wait(0.0)
    assert one.wait(LONG_S)


def _answer(bell, answer):
    bell.arm()
    if bell.wait(LONG_S):
        answer.ring()


def test_a_ring_wakes_a_worker_that_sleeps():
    bell, answer = make_bells(2)
    answer.arm()
    child = in_child(_answer, bell, answer)
    while not is_asleep(child.pid):
        assert child.is_alive()
    bell.ring()
    assert answer.wait(LONG_S)
    child.join(LONG_S)


def _write_and_ring(words, go, done):
    wait_for(go, lambda: words[0])
    for index in range(1, 1000):
        words[index] = index
    done.ring()


def test_what_was_written_before_a_ring_is_seen_after_the_wait_in_another_process():
    words = Segment.create("test", 8000).words(0, 1000)
    go, done = make_bells(2)
    child = in_child(_write_and_ring, words, go, done)
    done.arm()
    words[0] = 1
    go.ring()
    assert done.wait(LONG_S)
    assert words.tolist() == [1, *range(1, 1000)]
    child.join(LONG_S)


NUM_TURNS = 20_000


def _return_every_ball(words, mine, theirs):
    for turn in range(NUM_TURNS):
        wait_for(mine, lambda turn=turn: words[0] > turn)
        words[1] = turn + 1
        theirs.ring()


def test_no_wake_up_is_ever_lost():
    """Two processes take turns; each sleeps until the other has rung. The time-out is far longer
    than the test may take, so one lost ring fails it."""
    words = Segment.create("test", 16).words(0, 2)
    here, there = make_bells(2)
    child = in_child(_return_every_ball, words, there, here)
    for turn in range(NUM_TURNS):
        words[0] = turn + 1
        there.ring()
        here.arm()
        while words[1] <= turn:
            assert here.wait(LONG_S), f"the ring of turn {turn} was lost"
            here.arm()
    child.join(LONG_S)
    assert child.exitcode == 0


def _arm_and_die(bell):
    bell.arm()
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_process_leaves_a_bell_that_works():
    bell = make_bell()
    for _ in range(2):
        child = in_child(_arm_and_die, bell)
        child.join(LONG_S)
        assert child.exitcode == -signal.SIGKILL
        bell.ring()
        bell.arm()
        bell.ring()
        assert bell.wait(LONG_S)
        bell.arm()
        assert not bell.wait(0.0)


def test_other_threads_run_while_one_waits():
    go, done = make_bells(2)
    woken = []

    def sleep_and_answer():
        woken.append(go.wait(LONG_S))
        done.ring()

    go.arm()
    done.arm()
    sleeper = threading.Thread(target=sleep_and_answer)
    sleeper.start()
    go.ring()
    assert done.wait(LONG_S)
    sleeper.join(LONG_S)
    assert woken == [True]


def test_a_signal_does_not_end_a_wait():
    bell = armed()
    before = signal.signal(signal.SIGALRM, lambda *_: bell.ring())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        assert bell.wait(LONG_S), "the wait ended with the signal, before what it waits for"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def test_waiting_costs_no_processor_time():
    bell = armed()
    before_s = time.thread_time()
    assert not bell.wait(0.3)
    used_s = time.thread_time() - before_s
    assert used_s < 0.03, "a wait that spins or polls uses most of the 0.3 s"
