"""A run that is disturbed goes on, keeps its ratio and its bound on lag, and loses nothing."""

import pytest

from benchmarks.disturbances.stage import NUM_ACTORS, Phase, play

PHASES = (
    Phase("half of the actors killed", lambda stage: stage.kill_half(), 3.5),
    Phase("learner slower", lambda stage: stage.speeds.set(learner=2.0), 0.7),
    Phase("environments slower", lambda stage: stage.speeds.set(environments=5.0), 0.7),
    Phase("as before", lambda stage: stage.speeds.set(), 0.7),
)


@pytest.fixture(scope="module")
def played():
    return play(PHASES, settle_s=0.5)


def test_it_goes_on_through_every_disturbance(played):
    assert played.outcome["because"] == "interrupted", "by the end of the script alone"
    for phase in PHASES:
        assert played.tape.rate(*played.marks[phase.name]) > 0, phase.name


def test_the_actors_that_were_killed_come_back(played):
    assert played.outcome["restarts"] == NUM_ACTORS // 2


def test_no_unroll_that_was_sent_is_lost(played):
    assert played.tape.samples[-1].sent > 50
    assert played.tape.lost() == 0


def test_ratio_and_bound_on_lag_hold_all_the_time(played):
    end_s = played.tape.samples[-1].at_s
    assert played.tape.ratio_error(0.0, end_s) < 1e-9
    assert played.tape.highest_lag(0.0, end_s) <= 1
