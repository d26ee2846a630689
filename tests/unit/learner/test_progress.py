"""How far a run has come: the window, the target, the limits, and what is saved of them."""

import math

import pytest

from tianji.config.run import RunConfig
from tianji.learner.progress import WINDOW, Progress
from tianji.types import Episode

S = 10**9


def progress(**values):
    return Progress(RunConfig(algorithm="ppo", **values))


def episodes(*returns, start_ns=1000):
    """One episode every nanosecond."""
    return [Episode(start_ns + i, float(r), 5, 0) for i, r in enumerate(returns)]


def test_before_the_first_episode_there_is_no_mean():
    made = progress()
    made.add([], 50)
    assert math.isnan(made.mean_return)
    assert (made.env_steps, made.episodes) == (50, 0)


def test_the_mean_is_that_of_the_last_hundred_episodes():
    made = progress()
    made.add(episodes(1, 2, 3), 10)
    assert made.mean_return == 2.0
    made.add(episodes(*range(200)), 10)
    assert made.mean_return == sum(range(100, 200)) / 100
    assert made.episodes == 203


def test_the_target_counts_only_over_a_full_window():
    made = progress(target_return=10)
    made.add(episodes(*[50] * (WINDOW - 1)), 10)
    assert made.stop_reason(5000) is None
    assert made.time_to_target_s() is None
    made.add(episodes(50), 10)
    assert made.stop_reason(5000) == "target_reached"


def test_the_target_was_reached_when_the_episode_that_reached_it_finished():
    made = progress(target_return=1.0)
    made.started_ns = 2 * S
    made.add(episodes(*[0] * WINDOW, start_ns=3 * S), 10)
    later = [Episode(4 * S + i * S, 2.0, 5, 0) for i in range(60)]
    made.add(later, 10)
    assert made.target_ns == later[49].finished_ns, "fifty of a hundred have a return of 2"
    assert made.time_to_target_s() == 4 - 2 + 49


def test_a_mean_that_falls_again_does_not_unmake_the_target():
    made = progress(target_return=5)
    made.add(episodes(*[5] * WINDOW), 10)
    reached_ns = made.target_ns
    made.add(episodes(*[0] * WINDOW, start_ns=9000), 10)
    made.add(episodes(*[9] * WINDOW, start_ns=19000), 10)
    assert made.target_ns == reached_ns
    assert made.stop_reason(0) == "target_reached"


def test_a_target_that_is_met_exactly_is_met():
    made = progress(target_return=-3)
    made.add(episodes(*[-3] * WINDOW), 10)
    assert made.stop_reason(0) == "target_reached"


def test_without_a_target_only_limits_end_a_run():
    made = progress(max_env_steps=100)
    made.add(episodes(*[1e9] * WINDOW), 99)
    assert made.stop_reason(10**18) is None
    made.add([], 1)
    assert made.stop_reason(0) == "max_env_steps"


def test_the_wall_limit_counts_training_time_of_all_sessions():
    made = progress(max_wall_s=10)
    assert made.stop_reason(10**18) is None, "training has not begun"
    made.started_ns = 100 * S
    assert made.stop_reason(109 * S) is None
    assert made.stop_reason(110 * S) == "max_wall"
    made.wall_before_s = 6.0
    assert made.stop_reason(103 * S) is None
    assert made.stop_reason(104 * S) == "max_wall"


def test_the_target_comes_before_the_limits():
    made = progress(target_return=1, max_env_steps=10, max_wall_s=1)
    made.started_ns = 1
    made.add(episodes(*[2] * WINDOW), 10)
    assert made.stop_reason(10**18) == "target_reached"


@pytest.mark.parametrize(("steps", "fraction"), [(0, 0.0), (50, 0.25), (200, 1.0), (500, 1.0)])
def test_the_fraction_done_ends_at_one(steps, fraction):
    made = progress(max_env_steps=200)
    made.add([], steps)
    assert made.fraction == fraction


def test_the_best_mean_is_of_a_full_window_and_never_falls():
    made = progress()
    made.add(episodes(*[100] * 50), 10)
    assert made.best_mean_return == float("-inf")
    made.add(episodes(*[0] * 50), 10)
    assert made.best_mean_return == 50.0
    made.add(episodes(*[0] * 50), 10)
    assert (made.mean_return, made.best_mean_return) == (0.0, 50.0)


def test_time_stands_still_before_the_first_step():
    made = progress()
    made.wall_before_s = 3.0
    assert made.wall_s(10**18) == 3.0
    made.started_ns = 5 * S
    assert made.wall_s(6 * S) == 4.0


def test_a_restored_progress_goes_on():
    old = progress(target_return=8)
    old.started_ns = 1 * S
    old.add(episodes(*[4] * 60, *[9] * 60), 1000)
    state = old.state(now_ns=11 * S)
    new = progress(target_return=8)
    new.load_state(state)
    assert (new.env_steps, new.episodes, new.mean_return) == (1000, 120, old.mean_return)
    assert new.best_mean_return == old.best_mean_return
    assert new.wall_s(99 * S) == 10.0
    new.started_ns = 20 * S
    assert new.stop_reason(21 * S) is None
    new.add([Episode(22 * S, 209.0, 5, 0)], 5)
    assert new.time_to_target_s() == 12.0, "the time of both sessions"


def test_a_state_before_the_first_full_window_holds_no_best_mean():
    old = progress()
    old.add(episodes(7), 5)
    state = old.state(0)
    assert state["best_mean_return"] is None
    new = progress()
    new.load_state(state)
    new.add(episodes(*[1] * (WINDOW - 1)), 5)
    assert new.best_mean_return == (7 + WINDOW - 1) / WINDOW


def of_actor(actor, *returns):
    return [Episode(1000 + i, float(r), 5, actor) for i, r in enumerate(returns)]


def test_different_environments_count_the_same_however_many_episodes_they_have():
    made = progress(envs=("easy", "hard"))
    assert math.isnan(made.mean_return)
    made.add(of_actor(0, 10, 20, 30) + of_actor(1, 100), 10)
    made.add(of_actor(2, 40), 10)
    assert made.returns_by_env() == {"easy": 25.0, "hard": 100.0}
    assert made.mean_return == 62.5


def test_one_environment_is_not_told_apart():
    made = progress()
    made.add(episodes(1, 2), 10)
    assert made.returns_by_env() == {}


def test_the_target_needs_a_full_window_of_every_environment():
    made = progress(envs=("easy", "hard"), target_return=10)
    made.add(of_actor(0, *[50] * 300), 10)
    assert made.stop_reason(5000) is None and not made.is_rated
    made.add(of_actor(1, *[0] * WINDOW), 10)
    assert made.is_rated and made.stop_reason(5000) == "target_reached"


def test_the_returns_of_every_environment_are_saved():
    made, again = progress(envs=("easy", "hard")), progress(envs=("easy", "hard"))
    made.add(of_actor(0, 1, 2) + of_actor(1, 5), 10)
    again.load_state(made.state(0))
    assert again.returns_by_env() == {"easy": 1.5, "hard": 5.0}


def test_returns_that_were_saved_in_one_list_are_those_of_the_only_task():
    made = progress()
    made.add(episodes(1.0, 3.0), 10)
    state = made.state(0)
    for saved, mean in ((state["last_returns"][0], 2.0), ([], math.nan)):
        again = progress()
        again.load_state({**state, "last_returns": saved})
        assert again.mean_return == pytest.approx(mean, nan_ok=True)
