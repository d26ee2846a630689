"""A run with a rate limiter goes on when it is disturbed: actors wait, and nothing is lost."""

import pytest

from benchmarks.disturbances import stage as scene
from benchmarks.disturbances.stage import Phase, play
from tests.system.test_disturbances import (
    NUM_ACTORS,
    kill_half,
    look_until,
    see_all_arrive,
    slow_down,
)


def block_some(stage):
    """Until the slow learner has made actors wait."""
    stage.speeds.set(learner=4.0)
    before = stage.tape.samples[-1].blocked
    look_until(stage, lambda: stage.tape.samples[-1].blocked > before + 20)


PHASES = (
    Phase("learner slower", block_some, 0.3),
    Phase("half of the actors killed", kill_half, 0.3),
    Phase("as before", slow_down(), 0.3),
    Phase("the end", see_all_arrive, 0.0),
)


@pytest.mark.slow
def test_it_goes_on_and_counts_what_was_blocked(monkeypatch):
    monkeypatch.setattr(scene, "NUM_ACTORS", NUM_ACTORS)
    monkeypatch.setitem(scene.CONFIG, "num_actors", NUM_ACTORS)
    played = play(PHASES, settle_s=0.5, settings={"balance": "limiter"})
    assert played.outcome["because"] == "interrupted", "by the end of the script alone"
    assert played.outcome["restarts"] == NUM_ACTORS // 2
    for phase in PHASES[:-1]:
        assert played.tape.rate(*played.marks[phase.name]) > 0, phase.name
    blocked, blocked_s = played.tape.blocked(*played.marks["learner slower"])
    assert blocked > 10
    assert blocked_s > 0
    assert played.tape.lost() == played.tape.samples[-1].discarded == 0
    assert played.outcome["record"]["blocked_inserts"] >= blocked
