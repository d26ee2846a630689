"""Unrolls that a replay store takes in ahead of their version, while production is uneven."""

import json

import pytest

from tests.unit.buffer.rig import STEPS, Rig
from tianji.balance.lead import PATIENCE
from tianji.buffer.role import Episodes
from tianji.config.run import RunConfig
from tianji.learner.progress import Progress

POINT = (2, 18, 1)
LEAD = 4
"""Of this set-point: a fifth of 20 unrolls."""
AHEAD = 2 + 2 + LEAD
"""Unrolls that may be there for the next version and beyond it."""


def fill(rig):
    """Let actors make all that is allowed; return how many unrolls that is."""
    count = 0
    rig.buffer.tick()
    while actors := [actor for actor, held in enumerate(rig.stream.granted) if held]:
        for actor in actors:
            rig.send(actor)
            count += 1
        rig.buffer.tick()
    return count


def use_up(rig):
    """Make versions until the learner has to wait; return how many."""
    count = 0
    while (batch := rig.take()) is not None:
        rig.finish(batch)
        count += 1
    return count


def run_dry(rig):
    fill(rig)
    use_up(rig)


def uneven(max_lag=2, **settings):
    rig = Rig(POINT, max_lag, replay=True, **settings)
    for _ in range(3):  # the learner waits when the next version after it is made
        run_dry(rig)
    return rig


def test_uneven_production_stores_ahead():
    assert fill(uneven()) == AHEAD


def test_production_that_was_uneven_once_does_not():
    rig = Rig(POINT, max_lag=2, replay=True)
    run_dry(rig)
    run_dry(rig)
    assert fill(rig) == 4


@pytest.mark.parametrize("settings", [{"max_lag": 1}, {"num_slots": 8}])
def test_what_is_stored_ahead_needs_max_lag_two_and_no_more_slots(settings):
    assert fill(uneven(**settings)) == (4 if "max_lag" in settings else AHEAD)


def test_no_more_is_in_work_than_there_are_slots_for():
    rig = uneven()
    rig.buffer.tick()
    assert sum(map(len, rig.granted())) == 2 * (1 + 1) + 2


def test_what_is_stored_ahead_is_in_the_store_at_once():
    rig = uneven()
    put = rig.buffer.items_put
    fill(rig)
    assert rig.buffer.items_put == put + AHEAD * STEPS


def test_what_is_stored_ahead_is_used_in_batches_of_the_usual_size():
    rig = uneven()
    fill(rig)
    for _ in range(AHEAD // 2):
        batch = rig.take()
        assert batch.num_items == 2 * 2 * STEPS
        rig.finish(batch)
    assert rig.take() is None
    assert rig.buffer.items_taken == 2 * rig.buffer.items_put


def test_its_lag_ends_when_it_enters_the_store():
    """Not when its version is made, for which the learner's batch in work comes first."""
    rig = uneven()
    fill(rig)
    rig.finish(rig.take())
    before = rig.buffer.lag.counts()
    batch = rig.take()
    rig.buffer.tick()
    rig.send(0, oldest=rig.version - 2)
    rig.send(1)
    rig.buffer.tick()
    rig.finish(batch)
    use_up(rig)
    assert rig.buffer.lag.counts() == [before[0] + 1, before[1], 1]
    assert rig.buffer.discarded == 0


def test_an_unroll_older_than_max_lag_does_not_enter():
    rig = uneven()
    rig.buffer.tick()
    rig.send(0, oldest=rig.version - 3)
    fill(rig)
    use_up(rig)
    assert rig.buffer.discarded == 1
    assert rig.buffer.record()["lag_versions"]["max"] <= 2


def test_unrolls_that_waited_before_enter_with_the_next_batch():
    """Else those stored ahead would be counted before them, and they would get too old."""
    rig = Rig(POINT, max_lag=2, replay=True)
    run_dry(rig)
    run_dry(rig)
    fill(rig)
    rig.finish(rig.take())  # uneven from here on, with unrolls that wait in their slots
    assert len(list(rig.window.waiting())) == 2
    fill(rig)
    rig.finish(rig.take())
    assert not list(rig.window.waiting())
    use_up(rig)
    assert rig.buffer.discarded == 0


def test_steady_production_has_the_lag_of_the_set_point_again():
    rig = uneven()
    for _ in range(PATIENCE + LEAD):
        fill(rig)
        rig.finish(rig.take())
    counts = rig.buffer.lag.counts()
    for _ in range(10):
        assert fill(rig) == 2
        rig.finish(rig.take())
    assert rig.buffer.lag.counts()[0] == counts[0]
    assert rig.buffer.lag.counts()[1] == counts[1] + 20


def test_unrolls_in_work_when_production_is_even_again_are_not_lost():
    """Their versions are due after all that is stored ahead, which is more than max_lag later."""
    rig = uneven()
    fill(rig)
    in_work = []
    for _ in range(PATIENCE + 2 * LEAD):
        rig.finish(rig.take())
        for actor, oldest in in_work:
            rig.send(actor, oldest)
        rig.buffer.tick()
        in_work = [(actor, rig.version) for actor, held in enumerate(rig.granted()) for _ in held]
    assert rig.buffer.discarded == 0


def versions_due(gate, num_held):
    """Versions that a resumed gate lets the learner make before an actor has made anything."""
    window = Rig(POINT, max_lag=2, replay=True).window
    window.load_state(gate)
    window.starts_with(num_held)
    count = 0
    while window.may_take():
        window.entering()
        count += 1
        window.finish(count)
    return count


def test_what_was_stored_ahead_before_a_resume_is_used_after_it():
    rig = uneven()
    fill(rig)
    gate = rig.buffer.state()["gate"]
    assert versions_due(gate, num_held=POINT[1] + AHEAD) == AHEAD / 2
    assert versions_due(gate, num_held=0) == 0, "the checkpoint does not hold the store"
    assert versions_due({}, num_held=POINT[1] + AHEAD) == 0, "a checkpoint of before"


def test_steps_and_episodes_that_are_stored_ahead_are_told_after_a_resume():
    rig = uneven()
    rig.buffer.tick()
    rig.send(0, episodes=[(1, 0, 20.0, 7, 5)])
    rig.buffer.tick()
    saved = json.loads(json.dumps(rig.buffer.state()["untold"]))
    assert saved["env_steps"] == STEPS
    told = Progress(RunConfig(algorithm="ppo"))
    episodes = Episodes(rig.stream, told)
    episodes.load_state(saved)
    episodes.tell()
    assert (told.env_steps, told.episodes, told.mean_return) == (STEPS, 1, 20.0)
