"""What makes a trial better than another."""

import pytest

from tianji.config.run import RunConfig
from tianji.display.curve import Point
from tianji.errors import UsageError
from tianji.sweep.objective import MARKS, choose_objective, returns_at_marks


def objective(asked="auto", target=None):
    return choose_objective(asked, RunConfig(algorithm="ppo", target_return=target))


def summary(mean, time_to_target_s=None):
    return {"mean_return_100": mean, "time_to_target_s": time_to_target_s}


def test_runs_with_a_target_are_compared_by_time_and_others_by_return():
    assert objective().name == "return" and objective().direction == "maximize"
    assert objective(target=475).name == "time" and objective(target=475).direction == "minimize"
    assert objective("return", target=475).name == "return"
    with pytest.raises(UsageError, match="the runs have no target"):
        objective("time")


def test_whoever_misses_the_target_is_behind_all_that_reached_it():
    time = objective(target=475)
    ends = [summary(480, 3.0), summary(476, 9e6), summary(400), summary(-20_000)]
    values = [time.value(end) for end in ends]
    assert values == sorted(values)
    assert [time.shown(value) for value in values] == [3.0, 9e6, None, None]


def test_a_trial_without_an_episode_has_no_value():
    assert objective().value(summary(None)) is None
    assert objective(target=475).value(summary(None)) is None


def test_a_higher_return_on_the_way_is_better_in_both_directions():
    assert objective().at_mark(10.0) == 10.0
    assert objective(target=475).at_mark(10.0) == -10.0


def test_a_mark_has_the_return_of_the_last_record_before_it():
    points = [Point(10, 0.1, 1.0), Point(100, 1.0, 5.0), Point(300, 2.0, 7.0)]
    found = returns_at_marks(points, max_env_steps=1600)
    assert [MARKS[mark] * 1600 for mark in found] == [25.0, 50.0, 100.0, 200.0, 300.0]
    assert [*found.values()] == [1.0, 1.0, 5.0, 5.0, 7.0]
    assert returns_at_marks([], 1600) == {}
