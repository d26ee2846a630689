"""Busy and idle time of roles, from spans with known answers."""

import pytest

from tests.unit.trace.rings import ring
from tianji.trace.flows import Share, idle_shares
from tianji.trace.spans import Kind

B, A, S, P, W = Kind.BEGIN, Kind.INFER, Kind.STEP, Kind.PACED, Kind.WAIT
R, U = Kind.RECEIVE, Kind.UPDATE
BEGUN = ring("actor-9", (B, 0, 1), pid=9)


def in_ns(share):
    return pytest.approx((share.busy_s * 1e9, share.idle_s * 1e9))


def test_a_role_alone_is_idle_only_while_it_sleeps():
    role = ring("actor-0", (B, 0, 10), (A, 12, 20), (P, 25, 75), (S, 80, 100))
    assert in_ns(idle_shares([role])["actor-0"]) == (50, 50)


def test_roles_of_one_process_are_idle_while_the_other_has_its_turn():
    buffer = ring("buffer", (R, 0, 10))
    learner = ring("learner", (U, 12, 52), (W, 60, 90), (U, 95, 100))
    shares = idle_shares([BEGUN, buffer, learner])
    assert in_ns(shares["buffer"]) == (12, 88)
    assert in_ns(shares["learner"]) == (40 + 8 + 5 + 5, 42)


def test_roles_on_threads_of_one_process_work_at_the_same_time():
    learner = ring("learner", (U, 0, 40), (W, 40, 100))
    inference = ring("inference", (A, 10, 30), (W, 30, 60), (A, 60, 100), thread=1)
    shares = idle_shares([BEGUN, learner, inference])
    assert in_ns(shares["learner"]) == (40, 60)
    assert in_ns(shares["inference"]) == (60, 30)


def test_marks_take_no_time():
    role = ring("learner", (U, 0, 50), (Kind.USED, 0, 0), (U, 60, 100))
    assert in_ns(idle_shares([BEGUN, role])["learner"]) == (100, 0)


def test_time_begins_with_the_first_unroll_of_any_actor():
    actor = ring("actor-0", (W, 0, 1000), (B, 1000, 1010), (S, 1010, 1100), pid=2)
    learner = ring("learner", (Kind.PUBLISH, 0, 10), (W, 20, 1050), (U, 1050, 1200))
    shares = idle_shares([actor, learner])
    assert in_ns(shares["actor-0"]) == (100, 0)
    assert in_ns(shares["learner"]) == (150, 50)


def test_a_role_that_was_started_again_is_one_role():
    lives = [ring("actor-0", (B, 0, 10), (P, 10, 40)), ring("actor-0", (B, 90, 100), pid=2)]
    assert in_ns(idle_shares(lives)["actor-0"]) == (20, 30)


def test_the_idle_share():
    assert Share(busy_s=3.0, idle_s=1.0).idle_share == 0.25
