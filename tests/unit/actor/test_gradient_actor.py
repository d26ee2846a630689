"""An actor makes gradients at the point of the newest version until its round is closed."""

import numpy as np

from tests.fakes.scripted import (
    PAYLOAD_BYTES,
    ScriptedActing,
    ScriptedWorld,
    scripted_layout,
    write_version,
)
from tianji.actor.assembler import ActorOrders, Inference
from tianji.actor.episodes import FreshEpisodes
from tianji.actor.gradients import GradientAssembler, GradientPlan
from tianji.actor.role import Actor, ActorPlan
from tianji.channels.contributions import ContributionWriter, contribution_bytes
from tianji.channels.gauges import Gauge
from tianji.channels.inproc import InprocBoard, InprocStream
from tianji.channels.orders import BufferRows, Order

P, ROWS = 2, 4


class CountingEstimator:
    """The k-th gradient at a version is (sum of its rewards, 1)."""

    def __init__(self, complete_after=None):
        self.sum_P = np.zeros(P, np.float32)
        self.count = 0
        self.complete_after = complete_after
        self.moves = []

    def look_ahead(self):
        self.moves.append("ahead")

    def begin(self, version):
        self.moves.append("begin")
        self.sum_P[:], self.count = 0, 0

    def load(self, sum_P, count):
        self.sum_P[:], self.count = sum_P, count

    def is_complete(self, unroll, t):
        return t + 1 == self.complete_after

    def add(self, unroll, num_rows):
        self.sum_P += (unroll["reward"][:num_rows].sum(), 1)
        self.count += 1


class Rig:
    def __init__(self, complete_after=None, sums=None, seed=0, world=None):
        self.now = 100
        self.world = world or ScriptedWorld()
        self.acting = ScriptedActing()
        self.estimator = CountingEstimator(complete_after)
        (self.rows,) = BufferRows.private(num_actors=1).actors
        self.gauges, self.orders = self.rows.gauges, self.rows.orders
        self.board = InprocBoard(PAYLOAD_BYTES)
        self.sums = sums or InprocBoard(contribution_bytes(P))
        self.stream = InprocStream(scripted_layout(ROWS, 2), num_slots=4, num_lanes=1)
        self.writer = ContributionWriter(self.sums, self.sums)
        self.episodes = FreshEpisodes(seed)
        self.actor = self.make_actor(GradientPlan(ROWS))

    def make_actor(self, plan, timing=None):
        inference = Inference(self.acting, self.board, self.acting.read_policy)
        assembler = GradientAssembler(
            plan, inference, self.estimator, self.episodes, self.writer, ActorOrders(self.rows),
            self.gauges, self.clock, timing,
        )  # fmt: skip
        return Actor(
            ActorPlan(0, ROWS, {"obs": 0}), self.world, inference, assembler, self.stream.sender(0),
            self.rows, self.clock,
        )  # fmt: skip

    def clock(self):
        self.now += 1
        return self.now

    def publish(self, version):
        self.board.post(version, write_version(version))

    def grant(self, count=1):
        assert self.stream.grant(0, 0, count) == count

    def tick(self, count):
        for _ in range(count):
            assert self.actor.tick()

    def posted(self):
        sum_P = np.zeros(P, np.float32)
        return self.writer.left(sum_P), sum_P.tolist()


def make(rig):
    """A whole gradient: one tick for every row."""
    rig.tick(ROWS)


def test_nothing_happens_without_a_policy_or_without_a_grant():
    rig = Rig()
    rig.grant()
    assert not rig.actor.tick()
    rig = Rig()
    rig.publish(0)
    assert not rig.actor.tick()


def test_a_gradient_is_added_posted_and_announced():
    rig = Rig()
    rig.publish(3)
    rig.grant()
    make(rig)
    slot = rig.stream.take()
    stamp = rig.stream.stamp(slot)
    assert (stamp.actor, stamp.oldest_version, stamp.newest_version) == (0, 3, 3)
    assert stamp.env_steps == 7, "the first environment was reset in one of 4 rows"
    contribution, sum_P = rig.posted()
    assert contribution == (3, 1)
    assert sum_P[1] == 1
    assert rig.estimator.moves == ["ahead", "begin"]


def test_gradients_at_one_version_add_up():
    rig = Rig()
    rig.publish(0)
    rig.grant(2)
    make(rig)
    make(rig)
    assert rig.posted()[0] == (0, 2)
    assert rig.posted()[1][1] == 2


def test_every_gradient_starts_from_fresh_environments_with_numbers_of_its_own():
    rig = Rig()
    rig.publish(0)
    rig.grant(2)
    make(rig)
    make(rig)
    assert len(rig.world.seeds) == 2
    assert len(set(rig.world.seeds)) == 2


def test_a_gradient_follows_from_its_version_and_place_alone():
    one, other = Rig(), Rig()
    for rig in (one, other):
        rig.publish(0)
        rig.grant(3)
    make(one)
    other.tick(2)
    for rig in (one, other):  # the other had not finished when the round was closed
        rig.orders[Order.CLOSED] = 1
        rig.publish(1)
        make(rig)
    assert one.world.seeds[-1] == other.world.seeds[-1]
    assert one.acting.begun[-1] == other.acting.begun[-1]


def test_a_closed_round_drops_what_is_in_work_and_counts_it():
    rig = Rig()
    rig.publish(0)
    rig.grant()
    rig.tick(2)
    rig.orders[Order.CLOSED] = 1
    assert not rig.actor.tick()
    assert rig.gauges[Gauge.DISCARDED] == 1
    assert rig.gauges[Gauge.DISCARDED_STEPS] == 4
    assert rig.stream.take() is None


def test_it_goes_on_at_the_next_version_in_the_same_slot():
    rig = Rig()
    rig.publish(0)
    rig.grant()
    rig.tick(3)
    rig.orders[Order.CLOSED] = 1
    rig.actor.tick()
    rig.publish(1)
    make(rig)
    assert rig.stream.stamp(rig.stream.take()).oldest_version == 1
    assert rig.posted()[0] == (1, 1)


def test_a_new_version_alone_does_not_stop_a_gradient():
    rig = Rig()
    rig.publish(0)
    rig.grant()
    rig.tick(2)
    rig.publish(1)
    rig.tick(2)
    assert rig.stream.stamp(rig.stream.take()).oldest_version == 0


def test_an_estimator_may_have_enough_before_the_last_row():
    rig = Rig(complete_after=2)
    rig.publish(0)
    rig.grant()
    rig.tick(2)
    slot = rig.stream.take()
    assert rig.stream.stamp(slot).env_steps == 4
    assert not rig.stream.arrays["valid"][slot][2:].any()


def test_whoever_takes_over_goes_on_with_the_sum_of_the_dead():
    sums = InprocBoard(contribution_bytes(P))
    rig = Rig(sums=sums)
    rig.publish(5)
    rig.grant(2)
    make(rig)
    make(rig)
    heir = Rig(sums=sums)
    heir.publish(5)
    heir.grant()
    make(heir)
    assert heir.posted()[0] == (5, 3)
    assert heir.world.seeds[0] not in rig.world.seeds, "no gradient is made twice"


def test_a_sum_of_another_version_is_not_gone_on_with():
    sums = InprocBoard(contribution_bytes(P))
    rig = Rig(sums=sums)
    rig.publish(5)
    rig.grant()
    make(rig)
    heir = Rig(sums=sums)
    heir.publish(6)
    heir.grant()
    make(heir)
    assert heir.posted()[0] == (6, 1)


def test_returns_are_those_of_the_first_episodes_cut_where_the_rows_end():
    rig = Rig()
    rig.publish(0)
    rig.grant()
    make(rig)
    slot = rig.stream.take()
    lengths = rig.stream.arrays["episode_length"][slot]
    assert lengths[:, 0].tolist() == [0, 0, 3, 0], "an episode of 3 steps, and a reset"
    assert lengths[:, 1].tolist() == [0, 0, 0, 4], "one of 5 is cut after 4"


def test_later_episodes_are_not_shown():
    rig = Rig(world=ScriptedWorld(lengths=(1, 9)))
    rig.publish(0)
    rig.grant()
    make(rig)
    lengths = rig.stream.arrays["episode_length"][rig.stream.take()]
    assert lengths[:, 0].tolist() == [1, 0, 0, 0]


def test_an_item_may_be_begun_and_dropped_without_a_row():
    rig = Rig()
    rig.publish(0)
    rig.grant()
    assert rig.actor.begin() and rig.actor.is_working
    assert not rig.world.made.any()
    rig.orders[Order.CLOSED] = 1
    assert not rig.actor.begin()
    assert not rig.actor.is_working and rig.gauges[Gauge.DISCARDED_STEPS] == 0
