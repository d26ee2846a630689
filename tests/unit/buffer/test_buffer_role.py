"""The buffer: what it grants, in which order it gives, what it counts and saves."""

import itertools

import pytest

from tests.unit.buffer.rig import STEPS, Rig, turns
from tianji.channels.gauges import Gauge


def test_it_grants_what_the_balance_allows_and_numbers_the_rounds():
    rig = Rig(point=(2, 0, 1))
    rig.buffer.tick()
    assert rig.granted() == [[0, 1], [0, 1]]
    rig.buffer.tick()
    assert rig.granted() == [[0, 1], [0, 1]], "the same allowance was granted twice"


def test_a_finished_version_lets_the_actors_go_on():
    rig = Rig(point=(2, 0, 0))
    rig.buffer.tick()
    rig.send(0)
    rig.send(1)
    batch = rig.take()
    assert rig.granted() == [[], []], "serial training waits for the version"
    rig.finish(batch)
    assert rig.granted() == [[1], [1]]


def test_there_is_no_batch_before_enough_has_arrived_and_never_two_at_once():
    rig = Rig()
    rig.buffer.tick()
    assert rig.take() is None
    rig.send(0)
    assert rig.take() is None
    for actor in (1, 0, 1):
        rig.send(actor)
    batch = rig.take()
    assert turns(batch) == [(0, 0), (0, 1)]
    assert rig.take() is None, "a batch was given while another is in work"
    rig.finish(batch)
    assert turns(rig.take()) == [(1, 0), (1, 1)]


def test_the_order_of_arrival_never_matters():
    for order in set(itertools.permutations((0, 0, 1, 1, 2, 2))):
        rig = Rig(point=(3, 0, 1), num_actors=3)
        rig.buffer.tick()
        for actor in order:
            rig.send(actor)
            rig.buffer.tick()
        first = rig.take()
        rig.finish(first)
        assert turns(first) == [(0, 0), (0, 1), (0, 2)], order
        assert turns(rig.take()) == [(1, 0), (1, 1), (1, 2)], order


def test_the_oldest_enter_first_so_that_nothing_waits_until_it_is_too_old():
    rig = Rig(point=(2, 0, 1), max_lag=3)
    rig.version = 3
    rig.buffer.continue_at(3)
    rig.buffer.tick()
    for actor, oldest in ((0, 3), (1, 3), (0, 3), (1, 1)):
        rig.send(actor, oldest=oldest)
    assert turns(rig.take()) == [(1, 1), (0, 0)]


def test_lag_is_measured_when_an_unroll_enters():
    rig = Rig(point=(2, 0, 1), max_lag=5)
    rig.version = 4
    rig.buffer.continue_at(4)
    rig.buffer.tick()
    rig.send(0, oldest=4)
    rig.send(1, oldest=1)
    rig.take()
    assert rig.buffer.lag.summary() == {"mean": 1.5, "p95": 3, "max": 3}


def test_arrivals_are_counted_when_they_arrive_and_steps_when_they_enter():
    rig = Rig()
    rig.buffer.tick()
    rig.send(0, steps=7)
    assert rig.buffer.tick()
    assert (rig.gauges[Gauge.ITEMS], rig.gauges[Gauge.RECEIVED_STEPS]) == (1, 7)
    assert rig.progress.env_steps == 0
    rig.send(1, steps=8)
    rig.take()
    assert rig.progress.env_steps == 15
    assert not rig.buffer.tick(), "nothing arrived"


def test_a_batch_says_how_many_steps_are_used_for_the_first_time():
    rig = Rig()
    rig.buffer.tick()
    rig.send(0, steps=7)
    rig.send(1, steps=8)
    assert rig.take().unique_steps == 15


def test_episodes_reach_progress_in_the_order_of_their_rows_whatever_arrives_first():
    rig = Rig()
    seen = []
    rig.progress.add = lambda episodes, steps: seen.extend(episodes)
    rig.buffer.tick()
    rig.send(1, episodes=[(0, 1, 10.0, 5, 100), (2, 0, 30.0, 6, 300)])
    rig.send(0, episodes=[(0, 0, 5.0, 7, 90), (1, 0, 20.0, 8, 200)])
    rig.take()
    assert [tuple(episode) for episode in seen] == [
        (90, 5.0, 7, 0), (100, 10.0, 5, 1), (200, 20.0, 8, 0), (300, 30.0, 6, 1)
    ]  # fmt: skip


def test_episodes_of_several_rounds_reach_progress_in_the_order_they_finished():
    rig = Rig(point=(2, 2, 0), num_actors=1)
    seen = []
    rig.progress.add = lambda episodes, steps: seen.extend(episodes)
    rig.buffer.tick()
    for number in range(4):
        base = 100 * number
        rig.send(0, episodes=[(0, 0, 1.0, 5, base + 1), (3, 1, 1.0, 5, base + 4)])
    rig.take()
    times = [episode.finished_ns for episode in seen]
    assert times == sorted(times)


def test_rows_that_repeat_the_unroll_before_hold_no_new_episodes():
    rig = Rig(point=(1, 0, 0), num_actors=1)
    rig.buffer = rig.make_buffer((1, 0, 0), max_lag=1, first_row=2)
    rig.buffer.tick()
    rig.send(0, episodes=[(1, 0, 10.0, 5, 100), (2, 0, 20.0, 5, 200)])
    rig.take()
    assert (rig.progress.episodes, rig.progress.mean_return) == (1, 20.0)


def test_warm_up_enters_the_store_but_not_the_ratio():
    rig = Rig(point=(1, 3, 0), replay=True)
    rig.buffer.tick()
    assert rig.granted() == [[0, 1], [0]], "as many at once as there are slots for"
    for actor in (0, 1, 0):
        rig.send(actor)
        assert rig.take() is None
    rig.send(1)
    batch = rig.take()
    assert batch.num_items == 16
    assert (rig.buffer.items_put, rig.buffer.items_taken) == (STEPS, 16)
    rig.finish(batch)
    rig.make_version(0)
    assert (rig.buffer.items_put, rig.buffer.items_taken) == (2 * STEPS, 32)


def test_a_saved_buffer_goes_on_with_the_rounds_that_entered():
    rig = Rig(point=(2, 0, 1), max_lag=3)
    rig.buffer.tick()
    rig.make_version(0, 1)
    rig.send(1)
    rig.buffer.tick()
    state = rig.buffer.state()
    assert state["rounds"] == [1, 1], "what waits or is in work is made again"
    other = Rig(point=(2, 0, 1), max_lag=3)
    other.buffer.load_state(state)
    other.buffer.continue_at(1)
    other.version = 1
    other.buffer.tick()
    assert other.granted() == [[1, 2], [1, 2]]
    other.make_version(1, 0)
    assert other.buffer.lag.counts() == [4]
    assert (other.buffer.items_put, other.buffer.items_taken) == (4, 4)


def test_a_store_that_comes_back_full_needs_no_second_warm_up():
    rig = Rig(point=(1, 3, 0), replay=True)
    for actor in (0, 1, 0):
        rig.buffer.tick()
        rig.send(actor)
    rig.buffer.tick()
    rig.make_version(1)
    full = Rig(point=(1, 3, 0), replay=True)
    full.buffer.load_state(rig.buffer.state())
    full.buffer.tick()
    assert full.granted() == [[2], []], "the next version needs one more unroll"
    full.send(0)
    assert full.take() is not None
    state = rig.buffer.state()
    empty = Rig(point=(1, 3, 0), replay=True)
    empty.buffer.load_state({**state, "store": {"rng": state["store"]["rng"], "owed": 0.0}})
    empty.buffer.tick()
    assert empty.granted() == [[2, 3], [2]], "an empty store is warmed up again"


def test_a_resume_without_the_replay_store_says_that_it_is_filled_again():
    rig = Rig(point=(2, 0, 1), replay=True)
    rig.buffer.tick()
    rig.make_version(0, 1)
    state = rig.buffer.state()
    whole, without = Rig(point=(2, 0, 1), replay=True), Rig(point=(2, 0, 1), replay=True)
    whole.buffer.load_state(state)
    assert whole.buffer.news() == []
    del state["store"]["items"], state["store"]["sampler"]
    without.buffer.load_state(state)
    (told,) = without.buffer.news()
    assert "--save-replay" in told
    assert without.buffer.news() == []


def warmed_up(rig, order):
    """Let actors work in this order until the first batch; return it."""
    for turn in range(200):
        if (batch := rig.take()) is not None:
            return batch
        actor = order[turn % len(order)]
        if rig.stream.granted[actor]:
            rig.send(actor)
    raise AssertionError("there is never a batch")


@pytest.mark.parametrize("lag_target", [0, 1])
def test_a_warm_up_needs_few_slots_and_waits_for_nobody(lag_target):
    rig = Rig(point=(2, 21, lag_target), replay=True, num_slots=2 * (lag_target + 2) + 2)
    batch = warmed_up(rig, [0, 1])
    assert batch.num_items == 2 * 2 * STEPS, "the ratio counts what came after the warm-up"
    assert sum(rig.buffer.lag.counts()) == 23
    assert rig.progress.env_steps == 23 * STEPS
    rig.finish(batch)
    rig.buffer.tick()
    assert all(rig.granted())


def test_a_serial_warm_up_does_not_depend_on_who_is_faster():
    batches = []
    for order in ([0, 1], [1, 0], [0, 0, 0, 1], [1, 1, 1, 1, 0]):
        rig = Rig(point=(2, 21, 0), replay=True, num_slots=6)
        rig.stream.arrays["reward"][:] = 0.0
        batches.append(warmed_up(rig, order).keys.tolist())
        assert rig.buffer.state()["rounds"] == [12, 11]
    assert all(batch == batches[0] for batch in batches)


def test_a_serial_warm_up_ends_without_an_actor_that_is_given_up():
    rig = Rig(point=(2, 21, 0), replay=True, num_slots=6)
    rig.give_up(0)
    rig.replace(0)
    warmed_up(rig, [1])


def test_unrolls_that_entered_in_the_warm_up_are_not_made_again_after_a_resume():
    rig = Rig(point=(2, 21, 1), replay=True, num_slots=8)
    rig.buffer.tick()
    for _ in range(3):
        rig.send(0)
        rig.buffer.tick()
    assert rig.buffer.state()["rounds"] == [3, 0]
