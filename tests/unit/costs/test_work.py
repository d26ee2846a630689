"""Costs between and beyond the points of a profile."""

import pytest

from tests.unit.costs.profiles import MIB, actor, cost, learner, profile
from tianji.costs.work import actor_work, learner_cost, to_work

MEASURED = profile(
    actors=(
        actor(2, cost(0.01, strain=1.5, cpu_s=0.008), memory_bytes=200 * MIB),
        actor(4, cost(0.03, strain=2.0, cpu_s=0.020), memory_bytes=300 * MIB),
        actor(2, cost(0.005), threads=2),
    ),
    learners=(learner(1, 0.04), learner(4, 0.02)),
)


def test_what_was_measured_is_taken_as_it_is():
    found = actor_work(MEASURED, 2, 1)
    assert (found.unroll, found.memory_bytes) == (
        to_work(MEASURED.actors[0].unroll), 200 * MIB
    )  # fmt: skip
    assert actor_work(MEASURED, 2, 2).unroll.alone_s == 0.005


def test_between_two_points_costs_lie_on_a_line():
    found = actor_work(MEASURED, 3, 1)
    assert found.unroll.alone_s == pytest.approx(0.02)
    assert found.unroll.cpu_s == pytest.approx(0.014)
    assert found.unroll.strain == pytest.approx(1.75)
    assert found.memory_bytes == 250 * MIB


def test_beyond_the_points_an_actor_is_not_taken_for_faster_than_was_seen():
    assert actor_work(MEASURED, 8, 1).unroll.alone_s == pytest.approx(0.06)
    assert actor_work(MEASURED, 1, 1).unroll.alone_s == 0.01


@pytest.mark.parametrize(("asked", "taken"), [(1, 1), (2, 1), (3, 4), (4, 4), (9, 4)])
def test_threads_that_were_not_measured_cost_what_the_nearest_do(asked, taken):
    assert learner_cost(MEASURED, asked).threads == taken
    assert actor_work(MEASURED, 2, 5).unroll.alone_s == 0.005


def test_a_load_that_seems_to_help_is_noise():
    assert to_work(cost(0.01, strain=0.9)).under(1.0).alone_s == 0.01


def test_half_of_the_time_at_half_the_speed_leaves_three_quarters_of_the_work():
    assert to_work(cost(0.03, strain=2.0)).under(0.5).alone_s == pytest.approx(0.04)
