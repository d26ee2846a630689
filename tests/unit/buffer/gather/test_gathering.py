"""Tokens are counted, sums are taken once, with their true counts; late work is counted as lost."""

import numpy as np
import pytest

from tests.unit.buffer.rig import STEPS, Stream
from tianji.algorithms.interface import Gather
from tianji.buffer.gather.adding import AtLearner
from tianji.buffer.gather.gate import GatherGate, GatherPlan
from tianji.buffer.gather.rules import build_rule
from tianji.buffer.role import Buffer
from tianji.buffer.stores.sums import Sums
from tianji.channels.contributions import (
    Contribution,
    ContributionReader,
    ContributionWriter,
    contribution_bytes,
)
from tianji.channels.gauges import Gauge
from tianji.channels.inproc import InprocBoard
from tianji.channels.orders import BufferRows, Order
from tianji.config.run import RunConfig
from tianji.errors import WorkerLost
from tianji.learner.progress import Progress
from tianji.types import Stamp

P = 3


class Rig:
    """Actors are made by hand: gradient k of actor i is the vector (10 i + k, 1, 0)."""

    def __init__(
        self,
        gather,
        num_actors=3,
        absent_after_s=None,
        closing_s=0.0,
        slow=None,
        missing=(),
        state=None,
        max_lag=None,
    ):
        self.now = 1_000
        self.stream = Stream(4 * num_actors, num_actors)
        self.stream.missing.update(missing)
        self.senders = [self.stream.sender(i) for i in range(num_actors)]
        self.rows = BufferRows.private(num_actors)
        self.gauges = self.rows.gauges
        self.actor_gauges = [actor.gauges for actor in self.rows.actors]
        self.orders = [actor.orders for actor in self.rows.actors]
        boards = [InprocBoard(contribution_bytes(P)) for _ in range(num_actors)]
        self.writers = [ContributionWriter(board, board) for board in boards]
        self.sums = [(0, np.zeros(P, np.float32), 0)] * num_actors
        self.progress = Progress(RunConfig(algorithm="ppo"))
        rule = build_rule(gather, num_actors)
        gate = GatherGate(
            GatherPlan(P, absent_after_s, closing_s, max_lag=max_lag),
            rule,
            slow or AtLearner(rule, ContributionReader(boards), P),
            self.stream,
            self.rows,
            lambda: self.now,
        )
        self.buffer = Buffer(gate, Sums(gate), self.progress)
        self.version = 0
        if state is not None:
            self.buffer.load_state(state)  # before anything is granted, as in a resume
        self.buffer.tick()

    def add(self, actor, version=None):
        """The actor adds a gradient to its sum and posts it."""
        version = self.version if version is None else version
        at, sum_P, count = self.sums[actor]
        if at != version:
            sum_P, count = np.zeros(P, np.float32), 0
        sum_P = sum_P + np.array([10 * actor + count, 1, 0], np.float32)
        self.sums[actor] = version, sum_P, count + 1
        self.writers[actor].post(Contribution(version, count + 1), sum_P)

    def token(self, actor, version=None):
        version = self.version if version is None else version
        grant = self.senders[actor].reserve()
        assert grant is not None, f"actor {actor} has no slot"
        self.stream.arrays["episode_length"][grant.slot] = 0
        self.senders[actor].send(
            grant.slot, Stamp(actor, grant.round, version, version, STEPS, 0, 0)
        )

    def deliver(self, *actors):
        for actor in actors:
            self.add(actor)
            self.token(actor)
            self.buffer.tick()

    def finish(self, batch):
        self.version += 1
        self.buffer.finish(batch, self.version)


def mean(batch):
    return (batch.arrays["sum"] / batch.arrays["weight"]).tolist()


def first(m, m_init=None):
    return Gather("first", m, m_init or m)


def test_the_first_gradients_close_a_round_from_whomever_they_come():
    rig = Rig(first(3))
    rig.deliver(0, 0)
    assert rig.buffer.take() is None
    rig.deliver(2)
    batch = rig.buffer.take()
    assert batch.num_items == 3
    assert mean(batch) == pytest.approx([(0 + 1 + 20) / 3, 1, 0])
    assert batch.num_steps == 3 * STEPS


def test_a_round_is_taken_once():
    rig = Rig(first(1))
    rig.deliver(0)
    assert rig.buffer.take() is not None
    assert rig.buffer.take() is None


def test_the_first_version_may_take_another_number():
    rig = Rig(first(1, m_init=2))
    rig.deliver(0)
    assert rig.buffer.take() is None
    rig.deliver(0)
    rig.finish(rig.buffer.take())
    rig.deliver(0)
    assert rig.buffer.take().num_items == 1


def test_a_gradient_posted_before_its_token_is_counted_in_the_divisor():
    rig = Rig(first(2))
    rig.deliver(0)
    rig.add(1)
    rig.add(1)
    rig.token(1)  # the second token is still on its way
    rig.buffer.tick()
    batch = rig.buffer.take()
    assert batch.num_items == 3
    assert mean(batch) == pytest.approx([(0 + 10 + 11) / 3, 1, 0])
    rig.finish(batch)
    rig.token(1, version=0)
    rig.buffer.tick()
    assert rig.buffer.discarded == 0, "its gradient was in the sum"


def test_a_token_that_comes_after_its_round_is_counted_as_lost():
    rig = Rig(first(2))
    rig.deliver(0, 0)
    batch = rig.buffer.take()
    rig.add(1)
    rig.token(1)
    rig.finish(batch)
    rig.buffer.tick()
    assert rig.buffer.discarded == 1
    rig.deliver(1)
    assert rig.buffer.take() is None, "the old token is no gradient of this version"


def test_closing_tells_every_actor():
    rig = Rig(first(1))
    assert [row[Order.CLOSED] for row in rig.orders] == [0, 0, 0]
    rig.deliver(1)
    assert [row[Order.CLOSED] for row in rig.orders] == [1, 1, 1]


def test_the_mean_of_means_does_not_lean_to_the_fast():
    rig = Rig(Gather("harmonic", 2, 2), num_actors=2)
    rig.deliver(0, 0, 0, 0, 1)
    batch = rig.buffer.take()
    assert mean(batch) == pytest.approx([(1.5 + 10) / 2, 1, 0])
    assert batch.num_items == 5


def test_at_the_barrier_everybody_makes_one_gradient_and_no_more():
    rig = Rig(Gather("barrier"))
    rig.deliver(2, 0)
    assert rig.senders[0].reserve() is None
    rig.deliver(1)
    rig.finish(rig.buffer.take())
    rig.deliver(0, 1, 2)
    assert rig.buffer.take().num_items == 3


def test_every_arrival_makes_a_version_and_shows_its_lag():
    rig = Rig(Gather("every"), num_actors=2)
    for actor in (0, 1):
        rig.add(actor)
        rig.token(actor)
    rig.buffer.tick()
    for expected in ([0, 1, 0], [10, 1, 0]):
        batch = rig.buffer.take()
        assert mean(batch) == expected
        rig.finish(batch)
    assert rig.buffer.take() is None
    assert rig.buffer.lag.histogram[:2] == [1, 1]
    assert [row[Order.CLOSED] for row in rig.orders] == [0, 0]


def test_an_actor_gets_its_next_slot_when_its_version_is_out():
    rig = Rig(Gather("every"), num_actors=2)
    rig.deliver(0)
    assert rig.senders[0].reserve() is None
    rig.finish(rig.buffer.take())
    assert rig.senders[0].reserve() is not None


def test_what_a_dead_actor_had_done_is_not_lost():
    rig = Rig(first(3))
    rig.deliver(1, 1)
    rig.rows.actors[1].supervision[Order.RESETS] += 1
    rig.rows.supervision[Order.RESETS] += 1
    rig.buffer.tick()
    rig.senders[1].attach()
    rig.deliver(0)
    batch = rig.buffer.take()
    assert batch.num_items == 3
    assert mean(batch) == pytest.approx([(10 + 11 + 0) / 3, 1, 0])


def work_of(rig, actor, most=50):
    """Gradients that this actor can make, one after the other, before it gets no slot."""
    for count in range(most):
        if (grant := rig.senders[actor].reserve()) is None:
            return count
        stamp = Stamp(actor, grant.round, rig.version, rig.version, STEPS, 0, 0)
        rig.senders[actor].send(grant.slot, stamp)
        rig.buffer.tick()
    return most


def dies(rig, actor):
    rig.stream.missing.add(actor)
    rig.rows.actors[actor].supervision[Order.RESETS] += 1
    rig.rows.supervision[Order.RESETS] += 1
    rig.buffer.tick()


@pytest.mark.parametrize("has_come", [False, True])
def test_while_a_process_starts_nobody_does_more_than_the_round_needs(has_come):
    """Than it takes that the missing one alone could close it; and the slots that are out then."""
    rig = Rig(Gather("harmonic", 6, 6), missing=() if has_come else (1,))
    if has_come:
        dies(rig, 1)
    made = [work_of(rig, actor) for actor in (0, 2, 0, 2)]
    assert 1 / (made[0] + made[2]) + 1 / (made[1] + made[3]) < 9 / 6
    assert sum(made) <= 8
    rig.stream.missing.clear()
    rig.buffer.tick()
    assert work_of(rig, 0) == 50, "as many as it can, while the others are at work"


def test_where_anybody_will_do_nobody_waits_for_a_process_that_starts():
    assert work_of(Rig(first(60), missing=(1,)), 0) == 50


def test_nobody_waits_for_who_was_given_up_or_left_out():
    rig = Rig(Gather("harmonic", 60, 60), absent_after_s=9.0, missing=(1,))
    rig.rows.actors[1].supervision[Order.GIVEN_UP] = 1
    rig.buffer.tick()
    assert work_of(rig, 0) == 50
    rig = Rig(Gather("harmonic", 60, 60), absent_after_s=9.0)
    dies(rig, 1)
    rig.now += 10 * 10**9
    rig.buffer.tick()
    assert work_of(rig, 0) == 50


def test_whoever_takes_over_is_owed_the_slots_of_the_dead():
    rig = Rig(Gather("barrier"))
    assert rig.senders[1].reserve() is not None  # and it dies with it
    rig.rows.actors[1].supervision[Order.RESETS] += 1
    rig.rows.supervision[Order.RESETS] += 1
    rig.buffer.tick()
    rig.senders[1].attach()
    rig.buffer.tick()
    rig.deliver(0, 1, 2)
    assert rig.buffer.take().num_items == 3


def test_it_says_whom_it_waits_for():
    rig = Rig(Gather("harmonic", 6, 6))
    rig.deliver(0, 1, 2)
    rig.now += 4 * 10**9
    rig.deliver(0, 2)
    rig.now += 4 * 10**9
    rig.deliver(0, 2)
    (news,) = rig.buffer.news()
    assert news.startswith("Waiting for actor-1: it has sent no gradient for 8 s."), (
        "others deliver"
    )
    assert "algorithm.absent_after_s" in news
    assert rig.buffer.news() == [], "once"
    assert rig.buffer.record()["gather"]["waiting_for"] == [1]


def test_an_actor_that_is_always_slow_is_no_news():
    rig = Rig(Gather("barrier"))
    for _ in range(4):
        rig.now += 15 * 10**9
        assert rig.buffer.news() == []
        rig.deliver(0, 1, 2)
        rig.finish(rig.buffer.take())


def test_it_goes_on_without_a_silent_actor_if_told_to():
    rig = Rig(Gather("harmonic", 2, 2), absent_after_s=4.0)
    rig.now += 3 * 10**9
    rig.deliver(0, 2)
    assert rig.buffer.take() is None
    rig.now += 2 * 10**9
    rig.buffer.tick()
    assert rig.buffer.take().num_items == 2
    assert rig.buffer.record()["gather"]["absent"] == [1]


def test_an_actor_that_is_back_counts_again():
    rig = Rig(Gather("barrier"), absent_after_s=4.0)
    rig.now += 3 * 10**9
    rig.deliver(0, 2)
    rig.now += 2 * 10**9
    rig.buffer.tick()
    rig.finish(rig.buffer.take())
    rig.deliver(1)
    assert rig.buffer.record()["gather"]["absent"] == []
    rig.deliver(0)
    assert rig.buffer.take() is None
    rig.deliver(2)
    assert rig.buffer.take().num_items == 3


def give_up(rig, actor):
    rig.rows.actors[actor].supervision[Order.GIVEN_UP] = 1
    rig.rows.actors[actor].supervision[Order.RESETS] += 1
    rig.rows.supervision[Order.RESETS] += 1
    rig.stream.missing.add(actor)


def test_an_actor_that_is_given_up_ends_a_run_that_needs_everybody():
    rig = Rig(Gather("barrier"))
    give_up(rig, 1)
    with pytest.raises(WorkerLost, match=r"actor-1 .*absent_after_s"):
        rig.buffer.tick()


def test_an_actor_that_is_given_up_is_left_out_at_once_if_told_so():
    rig = Rig(Gather("barrier"), absent_after_s=1000.0)
    rig.deliver(0, 2)
    give_up(rig, 1)
    rig.buffer.tick()
    batch = rig.buffer.take()
    assert batch.num_items == 2
    rig.finish(batch)
    assert rig.buffer.news() == ["actor-1 was given up: the run goes on without it."]


def test_without_some_actor_the_first_gradients_still_close_a_round():
    rig = Rig(first(2))
    give_up(rig, 1)
    rig.deliver(0, 2)
    assert rig.buffer.take().num_items == 2


def test_sums_that_take_time_are_taken_later():
    rig = Rig(first(1), closing_s=2.0)
    rig.deliver(0)
    assert rig.buffer.take() is None
    assert rig.buffer.due_ns == rig.now + 2 * 10**9
    rig.now += 2 * 10**9
    assert rig.buffer.take().num_items == 1


def test_counts_come_back_with_the_state():
    rig = Rig(first(2))
    rig.deliver(0, 2)
    rig.finish(rig.buffer.take())
    again = Rig(first(2))
    again.buffer.load_state(rig.buffer.state())
    assert again.buffer.record()["gather"]["counts"] == [1, 0, 1]
    assert again.buffer.items_taken == 2


class Slow:
    """Sums that come together when the test says so."""

    counts = None

    def add_up(self, version, actors, sum_P):
        sum_P[:] = 1.0
        return self.counts

    def news(self):
        return ["somebody is slow"]


def test_sums_that_are_on_their_way_are_waited_for_without_haste():
    slow = Slow()
    rig = Rig(Gather("first", 2, 2), slow=slow)
    rig.deliver(0, 0)
    assert rig.buffer.due_ns == rig.now
    assert rig.buffer.take() is None
    assert rig.buffer.due_ns == 0, "whoever brings the total rings"
    assert "somebody is slow" in rig.buffer.news()
    slow.counts = [2, 0, 1]
    batch = rig.buffer.take()
    assert batch.num_items == 3
    assert batch.arrays["weight"] == 3.0
    assert rig.buffer.take() is None
    assert rig.buffer.record()["gather"]["counts"] == [2, 0, 1]


def test_actors_that_sleep_are_woken_when_a_round_is_closed_and_when_the_next_begins(monkeypatch):
    rig, wakes = Rig(first(2)), []
    monkeypatch.setattr(rig.stream, "wake_senders", lambda: wakes.append(rig.buffer.due_ns))
    rig.deliver(0)
    assert wakes == []
    rig.deliver(1)
    assert wakes == [rig.now]
    rig.finish(rig.buffer.take())
    assert wakes == [rig.now, 0]


def test_what_was_delivered_by_an_actor_that_is_left_out_is_counted_as_lost():
    """Its single gradient is not enough for the rule, and then it is silent."""
    rig = Rig(Gather("harmonic", 4, 4), num_actors=2, absent_after_s=4.0)
    rig.deliver(1)
    rig.now += 3 * 10**9
    rig.deliver(0, 0, 0, 0)
    rig.now += 2 * 10**9
    rig.buffer.tick()
    batch = rig.buffer.take()
    assert batch.num_items == 4
    assert batch.num_steps == 4 * STEPS
    assert rig.buffer.discarded == 1
    assert rig.buffer.record()["gather"]["discarded_steps"] == STEPS


def test_tokens_of_an_older_round_do_not_make_others_of_the_same_actor_late():
    slow = Slow()
    rig = Rig(first(1), num_actors=2, slow=slow)
    slow.counts = [1, 0]
    rig.deliver(0)
    rig.finish(rig.buffer.take())
    rig.deliver(0)
    slow.counts = [1, 1]  # a sum whose token is still on its way
    batch = rig.buffer.take()
    rig.token(1, version=0)
    rig.token(1, version=1)
    rig.finish(batch)
    rig.buffer.tick()
    assert rig.buffer.discarded == 1, "only that of the first round"


def test_losses_come_back_with_the_state_and_count_once():
    rig = Rig(first(1))
    rig.actor_gauges[2][Gauge.DISCARDED] += 3
    rig.actor_gauges[2][Gauge.DISCARDED_STEPS] += 7
    saved = rig.buffer.state()
    again = Rig(first(1))
    again.buffer.load_state(saved)
    rig.buffer.load_state(saved)  # as a learner that is restarted, beside the same actors
    for one in (again, rig):
        assert one.buffer.discarded == 3
        assert one.buffer.record()["gather"]["discarded_steps"] == 7


@pytest.mark.parametrize(("rounds", "needed"), [(0, 3), (1, 2)])
def test_a_restored_learner_takes_the_first_number_only_for_its_first_step(rounds, needed):
    rig = Rig(first(2, m_init=3))
    for _ in range(rounds):
        rig.deliver(0, 0, 0)
        rig.finish(rig.buffer.take())
    again = Rig(first(2, m_init=3), state=rig.buffer.state())
    again.version = 7  # versions that were published and are lost
    again.buffer.continue_at(7)
    again.deliver(*[0] * (needed - 1))
    assert again.buffer.take() is None
    again.deliver(0)
    assert again.buffer.take().num_items == needed


def test_an_actor_that_is_still_starting_is_not_left_out():
    rig = Rig(Gather("barrier"), absent_after_s=1.0, missing=(1,))
    rig.deliver(0, 2)
    rig.now += 5 * 10**9
    rig.buffer.tick()
    assert rig.buffer.take() is None
    rig.stream.missing.clear()
    rig.buffer.tick()
    rig.now += 5 * 10**9
    rig.buffer.tick()
    assert rig.buffer.take().num_items == 2


def test_a_token_of_a_lost_lane_that_comes_late_is_not_counted_twice():
    rig = Rig(first(3))
    late = rig.senders[0].reserve()
    dies(rig, 0)
    rig.stream.missing.clear()
    rig.buffer.tick()
    rig.deliver(0)
    slot = rig.stream._free.pop()
    rig.stream.stamps[slot] = Stamp(0, late.round, 0, 0, STEPS, 0, 0)
    rig.stream.sent[0].append(slot)
    rig.stream.ready.append(0)
    rig.buffer.tick()
    rig.deliver(1)
    assert rig.buffer.take() is None, "two gradients have come, and one of them twice"
    rig.deliver(1)
    assert rig.buffer.take().num_items == 3
