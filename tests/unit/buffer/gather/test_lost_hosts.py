"""Hosts that are lost with the sums of their actors: what was counted of them is made again."""

from tests.unit.buffer.gather.test_gathering import Rig, first, mean
from tianji.algorithms.interface import Gather
from tianji.channels.gauges import Gauge
from tianji.channels.orders import Order


def lose_host(rig, *actors):
    """As the supervisor tells it; another host has these actors at once."""
    for actor in actors:
        row = rig.rows.actors[actor].supervision
        row[Order.SUM_LOST] = row[Order.RESETS] = row[Order.RESETS] + 1
        rig.rows.supervision[Order.RESETS] += 1
        rig.sums[actor] = -1, None, 0
    rig.buffer.tick()
    for actor in actors:
        rig.senders[actor].attach()
    rig.buffer.tick()


def closed(rig):
    return [row[Order.CLOSED] for row in rig.orders]


def test_gradients_of_a_lost_host_do_not_count_and_are_counted_as_lost():
    rig = Rig(first(3))
    rig.deliver(1, 2)
    lose_host(rig, 1)
    assert rig.buffer.discarded == 1
    rig.deliver(0)
    assert rig.buffer.take() is None, "one of the three is lost"
    rig.deliver(0)
    batch = rig.buffer.take()
    assert batch.num_items == 3
    assert mean(batch) == [(20 + 0 + 1) / 3, 1, 0]
    assert rig.buffer.discarded == 1


def test_the_sum_of_an_actor_that_died_alone_counts():
    rig = Rig(first(2))
    lose_host(rig, 1)
    rig.deliver(1)
    rig.rows.actors[1].supervision[Order.RESETS] += 1  # after its host, long ago, it dies itself
    rig.rows.supervision[Order.RESETS] += 1
    rig.buffer.tick()
    rig.deliver(0)
    assert rig.buffer.take().num_items == 2
    assert rig.buffer.discarded == 0


class OnTheWay:
    """Sums that do not come before the test says so."""

    def __init__(self):
        self.counts, self.reopened = None, 0

    def add_up(self, version, actors, sum_P):
        sum_P[:] = 1.0
        self.actors = sorted(actors)
        return self.counts

    def reopen(self):
        self.reopened += 1

    def news(self):
        return []


def test_a_closed_round_is_opened_again_while_sums_are_on_their_way():
    sums = OnTheWay()
    rig = Rig(first(3), slow=sums)
    rig.deliver(0, 1, 1)
    assert rig.buffer.take() is None
    assert closed(rig) == [1, 1, 1]
    lose_host(rig, 1)
    assert sums.reopened == 1
    assert closed(rig) == [0, 0, 0], "the others go on with their sums"
    assert rig.gauges[Gauge.CLOSED] == 0
    sums.counts = [3, 0, 0]
    assert rig.buffer.take() is None
    rig.deliver(0, 0)
    assert closed(rig) == [1, 1, 1]
    batch = rig.buffer.take()
    assert (batch.num_items, sums.actors) == (3, [0])
    assert rig.buffer.discarded == 2


def test_a_round_of_which_nothing_is_left_begins_again():
    sums = OnTheWay()
    rig = Rig(Gather("barrier"), num_actors=2, slow=sums)
    rig.deliver(0, 1)
    assert rig.buffer.take() is None
    lose_host(rig, 0, 1)
    sums.counts = [1, 1]
    assert rig.buffer.take() is None
    assert rig.buffer.discarded == 2
    rig.deliver(1, 0)
    batch = rig.buffer.take()
    assert (batch.num_items, sums.actors) == (2, [0, 1])
    rig.finish(batch)
    rig.deliver(0, 1)
    assert rig.buffer.take().num_items == 2, "each has one slot again"


def test_at_the_barrier_a_lost_gradient_is_made_again_by_whoever_has_the_actor():
    rig = Rig(Gather("barrier"))
    rig.deliver(0, 1)
    lose_host(rig, 1)
    rig.deliver(2)
    assert rig.buffer.take() is None
    assert rig.senders[0].reserve() is None, "it has made its own"
    rig.deliver(1)
    batch = rig.buffer.take()
    assert mean(batch) == [(0 + 10 + 20) / 3, 1, 0]
    assert rig.buffer.discarded == 1


def test_a_gradient_that_was_not_sent_yet_is_owed_once():
    rig = Rig(Gather("barrier"))
    rig.deliver(0)
    lose_host(rig, 1)
    rig.deliver(1)
    assert rig.senders[1].reserve() is None
    rig.deliver(2)
    assert rig.buffer.take().num_items == 3
    assert rig.buffer.discarded == 0


def test_what_was_taken_is_not_lost_with_the_host():
    rig = Rig(first(2))
    rig.deliver(0, 1)
    batch = rig.buffer.take()
    lose_host(rig, 1)
    assert closed(rig) == [1, 1, 1]
    rig.finish(batch)
    assert rig.buffer.discarded == 0
    rig.deliver(1, 1)
    assert rig.buffer.take().num_items == 2


def test_the_harmonic_rule_wants_gradients_of_the_lost_actor_again():
    rig = Rig(Gather("harmonic", 2, 2), num_actors=2)
    rig.deliver(1, 1, 1)
    lose_host(rig, 1)
    rig.deliver(0)
    assert rig.buffer.take() is None
    assert rig.buffer.record()["gather"]["waiting_for"] == [1]
    rig.deliver(1)
    assert rig.buffer.take().num_items == 2
    assert rig.buffer.discarded == 3


def test_an_actor_that_was_left_out_is_not_asked_by_opening_a_round_again():
    """It finishes what it has in work, and so shows that it is back."""
    sums = OnTheWay()
    rig = Rig(Gather("barrier"), absent_after_s=4.0, slow=sums)
    rig.now += 3 * 10**9
    rig.deliver(0, 2)
    rig.now += 2 * 10**9
    rig.buffer.tick()
    assert closed(rig) == [1, 0, 1]
    rig.buffer.take()
    lose_host(rig, 2)
    assert closed(rig) == [0, 0, 0]
    rig.deliver(2)
    assert closed(rig) == [1, 0, 1]
