"""The loop of a worker, with a role, a bell and a clock that do what the test says."""

import pytest

from tests.fakes.scripted import gauge_row
from tianji.channels.gauges import Activity, Gauge, timed_tick
from tianji.engines import loop
from tianji.engines.loop import IDLE_HEARTBEAT_S, run_loop


class Clock:
    """Time passes only where the test says so."""

    def __init__(self, monkeypatch):
        self.now_ns = 1000
        monkeypatch.setattr(loop.time, "monotonic_ns", lambda: self.now_ns)


class Role:
    """Works as the script says; a tick takes 10 ns."""

    def __init__(self, clock, works):
        self.clock, self.works, self.ticks = clock, list(works), 0

    def tick(self):
        self.clock.now_ns += 10
        self.ticks += 1
        return self.works.pop(0)

    def is_over(self):
        return not self.works


class Bell:
    """Sleeping takes 500 ns."""

    def __init__(self, clock):
        self.clock, self.waits, self.arms = clock, [], 0

    def arm(self):
        self.arms += 1

    def wait(self, timeout_s):
        self.clock.now_ns += 500
        self.waits.append(timeout_s)
        return False


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def run(clock, works, rows=1):
    role, bell = Role(clock, works), Bell(clock)
    gauges = [gauge_row() for _ in range(rows)]
    run_loop(lambda: timed_tick(role, gauges[0], lambda: clock.now_ns), gauges, bell, role.is_over)
    return role, bell, gauges


def test_it_sleeps_only_when_there_was_no_work_before_and_after_arming(clock):
    role, bell, _ = run(clock, [True, True, False, False, True])
    assert role.ticks == 5
    assert bell.arms == 1
    assert bell.waits == [IDLE_HEARTBEAT_S]


def test_work_that_came_before_the_bell_was_armed_keeps_it_awake(clock):
    _, bell, _ = run(clock, [False, True, False, True, True])
    assert bell.arms == 2
    assert bell.waits == []


def test_the_bell_is_armed_anew_before_every_sleep(clock):
    _, bell, _ = run(clock, [False] * 6)
    assert bell.arms == 3
    assert len(bell.waits) == 3


def test_a_stop_that_came_before_the_bell_was_armed_keeps_it_awake(clock):
    """Its ring made no post, so the loop must look once more."""
    bell = Bell(clock)
    run_loop(lambda: False, [gauge_row()], bell, lambda: bell.arms == 1)
    assert bell.waits == []


def test_time_at_work_and_time_asleep_are_counted_apart(clock):
    _, _, (row,) = run(clock, [True, False, False, True, False, False])
    assert row[Gauge.BUSY_NS] == 6 * 10
    assert row[Gauge.WAIT_NS] == 2 * 500


def test_an_actor_that_sleeps_while_a_server_infers_counts_that_apart(clock):
    asking, paced = gauge_row(), gauge_row()
    asking[Gauge.ACTIVITY], paced[Gauge.ACTIVITY] = Activity.ASKING, Activity.PACED
    bell = Bell(clock)
    run_loop(lambda: False, [asking, paced], bell, lambda: len(bell.waits) == 1)
    assert [row[Gauge.WAIT_NS] for row in (asking, paced)] == [500, 500]
    assert [row[Gauge.ANSWER_NS] for row in (asking, paced)] == [500, 0]


def test_every_role_of_the_worker_sleeps_and_gives_signs_of_life(clock):
    _, _, gauges = run(clock, [False] * 4, rows=2)
    assert [row[Gauge.WAIT_NS] for row in gauges] == [1000, 1000]
    assert [row[Gauge.HEARTBEAT_NS] for row in gauges] == [clock.now_ns] * 2


def test_a_tick_is_a_sign_of_life_too(clock):
    _, _, (row,) = run(clock, [True, True])
    assert row[Gauge.HEARTBEAT_NS] == clock.now_ns


def test_a_run_that_is_over_before_it_began_does_nothing(clock):
    role, bell, (row,) = run(clock, [])
    assert role.ticks == 0 and bell.waits == []
    assert row[Gauge.ACTIVITY] == Activity.STOPPED


def test_at_the_end_every_role_says_that_it_stopped(clock):
    _, _, gauges = run(clock, [True], rows=2)
    assert [row[Gauge.ACTIVITY] for row in gauges] == [Activity.STOPPED] * 2


def test_an_exception_leaves_the_loop_and_shows_what_it_was_doing(clock):
    row = gauge_row()
    row[Gauge.ACTIVITY] = Activity.ACTING

    def fail():
        raise RuntimeError("the world ended")

    with pytest.raises(RuntimeError, match="the world ended"):
        run_loop(fail, [row], Bell(clock), lambda: False)
    assert row[Gauge.ACTIVITY] == Activity.ACTING


@pytest.mark.parametrize(
    ("due_after_ns", "expected_s"),
    [(100_000, 1e-4), (10**10, IDLE_HEARTBEAT_S), (-5, 0.0), (None, IDLE_HEARTBEAT_S)],
)
def test_it_sleeps_no_longer_than_until_something_is_due(clock, due_after_ns, expected_s):
    bell = Bell(clock)

    def due_ns():
        return 0 if due_after_ns is None else clock.now_ns + due_after_ns

    run_loop(lambda: False, [gauge_row()], bell, lambda: len(bell.waits) == 1, due_ns)
    assert bell.waits == pytest.approx([expected_s])
