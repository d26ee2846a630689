"""A run that is disturbed goes on, keeps its ratio and its bound on lag, and loses nothing."""

import time

import pytest

from benchmarks.disturbances import stage as scene
from benchmarks.disturbances.stage import SAMPLE_PERIOD_S, Phase, play
from tianji.channels.gauges import Gauge

NUM_ACTORS = 2
LONG_S = 60.0
"""Never waited for in a test that passes."""
VERSION_STEPS = 64


def look_until(stage, is_over):
    """However long that takes on this machine."""
    end_s = time.monotonic() + LONG_S
    while not is_over() and time.monotonic() < end_s:
        time.sleep(SAMPLE_PERIOD_S)
        stage.sample()


def go_on(stage):
    enough = stage.tape.samples[-1].received_steps + 5 * VERSION_STEPS
    look_until(stage, lambda: stage.tape.samples[-1].received_steps >= enough)


def sent_by_the_killed(stage):
    rows = stage._gauges.rows
    return [rows[f"actor-{index}"][Gauge.ITEMS] for index in range(NUM_ACTORS // 2)]


def kill_half(stage):
    """Until they have come back and done some work."""
    stage.kill_half()
    look_until(stage, lambda: len(stage.events) >= NUM_ACTORS // 2)
    before = sent_by_the_killed(stage)
    look_until(
        stage,
        lambda: all(
            now > then for now, then in zip(sent_by_the_killed(stage), before, strict=True)
        ),
    )


def slow_down(**factors):
    def slow_down(stage):
        stage.speeds.set(**factors)
        go_on(stage)

    return slow_down


def see_all_arrive(stage):
    """A moment in which nothing is under way."""
    look_until(stage, lambda: stage.tape.samples[-1].sent <= stage.tape.samples[-1].received)


PHASES = (
    Phase("half of the actors killed", kill_half, 0.3),
    Phase("learner slower", slow_down(learner=2.0), 0.5),
    Phase("environments slower", slow_down(environments=5.0), 0.5),
    Phase("as before", slow_down(), 0.5),
)
THE_END = Phase("the end", see_all_arrive, 0.0)


@pytest.fixture
def played(monkeypatch):
    monkeypatch.setattr(scene, "NUM_ACTORS", NUM_ACTORS)
    monkeypatch.setitem(scene.CONFIG, "num_actors", NUM_ACTORS)
    return play((*PHASES, THE_END), settle_s=0.5)


def test_a_run_goes_on_through_every_disturbance(played):
    assert played.outcome["because"] == "interrupted", "by the end of the script alone"
    for phase in PHASES:
        assert played.tape.rate(*played.marks[phase.name]) > 0, phase.name
    the_actors_that_were_killed_come_back(played)
    no_unroll_that_was_sent_is_lost(played)
    ratio_and_bound_on_lag_hold_all_the_time(played)


def the_actors_that_were_killed_come_back(played):
    start_s, end_s = played.marks["half of the actors killed"]
    assert end_s - start_s < LONG_S, "they have done no work again"
    assert played.outcome["restarts"] == NUM_ACTORS // 2


def no_unroll_that_was_sent_is_lost(played):
    assert played.tape.samples[-1].sent > 50
    assert played.tape.lost() == 0


def ratio_and_bound_on_lag_hold_all_the_time(played):
    end_s = played.tape.samples[-1].at_s
    assert played.tape.ratio_error(0.0, end_s) < 1e-9
    assert played.tape.highest_lag(0.0, end_s) <= 1
