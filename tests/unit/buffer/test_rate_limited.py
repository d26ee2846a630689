"""The rate-limited gate: whoever may not go on waits, and what waited enters in its order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.replay import make_replay
from tests.unit.buffer.rig import LAYOUT, STEPS, Rig, turns
from tianji.balance.samples_per_insert import Limits, limits_around
from tianji.buffer.rate_limited import (
    SLOTS_AT_HAND,
    QueueTable,
    RateLimited,
    RateLimitedPlan,
    ReplayTable,
)
from tianji.buffer.role import Buffer
from tianji.buffer.stores.queue import Queue
from tianji.channels.gauges import Gauge

BATCH = 2  # unrolls of a queue's batch
QUEUE = limits_around(1.0, BATCH, BATCH)  # bounds [0, 4]
MINIBATCHES = 2
SAMPLED = MINIBATCHES * 16  # items of a batch from the replay store: 2 for each of two unrolls
KEPT_ROWS = 12  # of each actor
REPLAY = limits_around(2.0, 3 * STEPS, SAMPLED)


class LimitedRig(Rig):
    def __init__(self, limits=QUEUE, num_actors=2, replay=False):
        self.limits = limits
        self.clock_ns = 0
        now_ns = lambda: self.clock_ns  # noqa: E731
        super().__init__(num_actors=num_actors, num_slots=30, replay=replay, now_ns=now_ns)
        self.buffer.tick()

    def make_buffer(self, point, max_lag, first_row=0, replay=False):
        rest = self.stream, self.rows, self.now_ns
        if replay:
            plan = RateLimitedPlan(self.limits, SAMPLED, STEPS)
            table = ReplayTable(self.stream.num_lanes, KEPT_ROWS * LAYOUT.num_envs)
            store = make_replay(
                self.stream, LAYOUT, KEPT_ROWS, updates_per_batch=MINIBATCHES, keeps_ratio=False
            )
        else:
            plan = RateLimitedPlan(self.limits, BATCH, 1)
            table = QueueTable()
            store = Queue(self.stream, LAYOUT.env_axes())
        self.gate = RateLimited(plan, table, *rest)
        return Buffer(self.gate, store, self.progress, first_row)

    def fill(self, *actors):
        for actor in actors:
            self.send(actor)
            self.buffer.tick()

    @property
    def blocked(self):
        return self.gauges[Gauge.BLOCKED], self.gauges[Gauge.BLOCKED_NS]


def test_an_actor_has_one_slot_to_write_and_one_at_hand():
    assert LimitedRig().granted() == [[0, 1], [0, 1]]
    assert SLOTS_AT_HAND == 2


def test_a_batch_is_taken_when_the_queue_holds_it():
    rig = LimitedRig()
    rig.fill(0)
    assert rig.take() is None
    rig.fill(0)
    assert turns(rig.take()) == [(0, 0), (1, 0)]


def test_an_actor_whose_insert_is_blocked_gets_no_further_slot():
    rig = LimitedRig()
    rig.fill(0, 0, 0, 0)
    assert rig.granted() == [[4, 5], [0, 1]], "the window has room for four"
    rig.fill(0)
    assert rig.granted() == [[5], [0, 1]]
    rig.fill(0)
    assert rig.granted() == [[], [0, 1]]
    assert rig.blocked[0] == 2


def test_what_was_blocked_enters_in_order_when_a_batch_is_taken():
    rig = LimitedRig()
    rig.fill(0, 0, 0, 0, 1, 0, 1)
    first = rig.take()
    assert turns(first) == [(0, 0), (1, 0)]
    rig.buffer.tick()
    assert rig.granted() == [[5, 6], [2]], "one of each actor is in; one of actor 1 is not"
    rig.finish(first)
    assert turns(rig.take()) == [(2, 0), (3, 0)]


def test_nothing_overtakes_a_blocked_unroll():
    rig = LimitedRig(REPLAY, replay=True)
    rig.fill(0, 0, 0, 0)
    rig.send(0, steps=6)
    rig.buffer.tick()
    rig.fill(0)
    assert rig.blocked[0] == 1
    assert rig.gate.limiter.can_insert(2)
    rig.send(1, steps=2)
    rig.buffer.tick()
    assert rig.blocked[0] == 2, "a short unroll would fit, and waits for its turn"


def test_a_queue_waits_for_its_minimum_size_again_after_every_batch():
    rig = LimitedRig(Limits(1.0, 2 * BATCH, 0.0, 4.0 * BATCH))
    rig.fill(0, 1, 0)
    assert rig.take() is None
    rig.fill(1)
    rig.finish(rig.take())
    assert rig.gate.limiter.size == BATCH
    assert rig.take() is None
    rig.fill(0, 1)
    assert rig.take() is not None


def test_blocked_time_is_added_up_over_the_actors():
    rig = LimitedRig()
    rig.fill(0, 0, 0, 0)
    rig.clock_ns = 100
    rig.fill(0)
    rig.clock_ns = 110
    rig.fill(0)
    rig.fill(1)
    rig.clock_ns = 140
    rig.buffer.tick()
    assert rig.blocked == (3, 40 + 30), "two unrolls of one actor count once"
    rig.take()
    rig.clock_ns = 150
    rig.buffer.tick()
    assert rig.blocked == (3, 80), "both unrolls of actor 0 are in, that of actor 1 is not"


def test_without_a_blocked_insert_no_time_is_counted():
    rig = LimitedRig()
    rig.clock_ns = 10**9
    rig.fill(0, 1)
    rig.finish(rig.take())
    assert rig.blocked == (0, 0)


def test_the_lag_of_a_queue_is_counted_when_a_batch_takes_the_unroll():
    rig = LimitedRig()
    rig.fill(0, 0, 0, 0)
    rig.finish(rig.take())
    rig.finish(rig.take())
    assert rig.buffer.lag.counts() == [2, 2]


def test_the_lag_of_replay_is_counted_when_the_unroll_enters_the_store():
    rig = LimitedRig(REPLAY, replay=True)
    rig.fill(0, 0, 0, 0, 0)
    assert rig.blocked[0] == 0
    rig.fill(0, 1)
    assert rig.blocked[0] == 2
    rig.finish(rig.take())
    rig.finish(rig.take())
    assert rig.buffer.lag.counts() == [7], "the blocked ones entered at version 0, after a sample"
    assert rig.buffer.discarded == 0


def test_the_learner_waits_while_it_may_not_sample():
    rig = LimitedRig(REPLAY, replay=True)
    rig.fill(0, 1)
    assert rig.take() is None, "the store holds less than its minimum"
    rig.fill(0)
    rig.finish(rig.take())
    assert rig.take() is None, "it is as far behind as the window allows"
    rig.fill(0)
    assert rig.take() is None
    rig.fill(1)
    assert rig.take() is not None


def test_a_minimum_that_is_no_multiple_of_an_unroll_is_reached():
    limits = Limits(2.0, 3 * STEPS + 1, -2.0, 2 * SAMPLED - 2.0)
    rig = LimitedRig(limits, replay=True)
    rig.fill(0, 1, 0)
    assert not rig.gate.limiter.can_insert(STEPS)
    rig.fill(1)
    assert rig.take() is not None


def test_steps_that_newer_ones_push_out_are_deleted():
    rig = LimitedRig(limits_around(2.0, 3 * STEPS, 10**6), replay=True)
    rig.fill(*[0] * 5, 1)
    kept = KEPT_ROWS * LAYOUT.num_envs
    assert rig.gate.limiter.size == kept + STEPS
    assert rig.gate.limiter.deletes == 5 * STEPS - kept


def test_an_actor_that_died_leaves_what_had_arrived():
    rig = LimitedRig()
    rig.fill(0, 0, 0, 0, 0)
    rig.replace(0)
    rig.buffer.tick()
    rig.buffer.tick()
    assert rig.granted()[0] == [5], "its successor is owed what it held"
    rig.finish(rig.take())
    rig.finish(rig.take())
    rig.buffer.tick()
    assert rig.granted()[0] == [5, 6]
    assert rig.buffer.items_taken == 4


def test_an_actor_that_is_given_up_gets_no_slot_for_what_was_blocked():
    rig = LimitedRig()
    rig.fill(0, 0, 0, 0, 0, 0)
    rig.stream.missing.add(0)
    rig.replace(0)
    rig.buffer.tick()
    rig.give_up(0)
    rig.buffer.tick()
    rig.stream.missing.clear()
    rig.finish(rig.take())
    rig.buffer.tick()
    assert rig.granted()[0] == []


def test_a_learner_does_not_wait_for_more_than_the_store_can_hold_without_an_actor():
    kept = KEPT_ROWS * LAYOUT.num_envs
    rig = LimitedRig(limits_around(2.0, 2 * kept, SAMPLED), replay=True)
    rig.fill(1, *[0] * 6)
    assert rig.gate.limiter.size == kept + STEPS
    assert rig.take() is None, "actor 1 has not filled its part of the store"
    rig.stream.missing.add(1)
    rig.replace(1)
    rig.buffer.tick()
    assert rig.take() is None, "its successor may come"
    rig.give_up(1)
    rig.buffer.tick()
    assert rig.take() is not None
    (told,) = rig.buffer.news()
    assert "at most 32 items" in told and "not from limiter.min_size = 48" in told
    assert rig.buffer.news() == []


@pytest.mark.parametrize("replay", [False, True])
def test_a_minimum_that_is_reached_without_an_actor_stays(replay):
    limits = REPLAY if replay else QUEUE
    rig = LimitedRig(limits, replay=replay)
    rig.give_up(1)
    rig.stream.missing.add(1)
    rig.replace(1)
    rig.buffer.tick()
    assert rig.gate.limiter.limits == limits
    assert rig.buffer.news() == []


def test_a_checkpoint_leaves_out_what_waits():
    rig = LimitedRig()
    rig.fill(0, 0, 0, 0, 0, 0, 1)
    rig.finish(rig.take())
    assert len(rig.gate._refused) == 1
    assert rig.buffer.state()["rounds"] == [2, 0], "a resume makes the others again"


def test_steps_of_a_store_from_before_count_as_inserted():
    rig = LimitedRig(REPLAY, replay=True)
    rig.gate.starts_with(4)
    assert rig.gate.limiter.inserts == 4 * STEPS
    assert rig.gate.may_take()


@pytest.mark.parametrize("replay", [False, True])
@given(st.lists(st.sampled_from(["actor-0", "actor-1", "learner", "death"]), max_size=60))
def test_nothing_is_lost_and_nobody_is_stuck(replay, events):
    rig = LimitedRig(REPLAY if replay else QUEUE, replay=replay)
    limits, limiter = rig.limits, rig.gate.limiter
    sent = 0
    for event in events:
        granted = rig.granted()
        if event == "learner":
            if (batch := rig.take()) is not None:
                rig.finish(batch)
        elif event == "death":
            rig.replace(0)
        elif granted[int(event[-1])]:
            rig.send(int(event[-1]))
            sent += 1
        rig.buffer.tick()
        rig.buffer.tick()
        may_sample = limiter.can_sample(SAMPLED if replay else BATCH)
        assert any(rig.granted()) or may_sample, "nobody may go on"
        if limiter.size > limits.min_size:
            assert limiter.ahead <= limits.max_diff
    waits = len(rig.gate._refused)
    assert limiter.inserts == (sent - waits) * (STEPS if replay else 1)
    assert rig.buffer.discarded == 0
