"""Going on without an actor that is silent, and with it again."""

from tests.unit.buffer.gather.test_gathering import Rig
from tianji.algorithms.interface import Gather
from tianji.channels.orders import Order

SECOND = 10**9
BARRIER = Gather("barrier")
PATIENCE_S = 4.0


def without_actor_1(gather=BARRIER):
    """A gathering that has gone on to version 1 without actor 1."""
    rig = Rig(gather, absent_after_s=PATIENCE_S)
    rig.deliver(0, 2)
    rig.now += 4 * SECOND
    rig.buffer.tick()
    rig.finish(rig.buffer.take())
    return rig


def absent(rig):
    return rig.buffer.record()["gather"]["absent"]


def test_who_waited_for_the_silent_one_with_us_was_not_silent():
    rig = without_actor_1()
    rig.buffer.tick()
    assert absent(rig) == [1]
    rig.now += 4 * SECOND - 1
    rig.buffer.tick()
    assert absent(rig) == [1]
    rig.now += 1
    rig.buffer.tick()
    assert absent(rig) == [0, 1, 2]


def test_who_waited_with_us_is_not_named_either():
    rig = Rig(BARRIER)
    rig.deliver(0, 2)
    rig.now += 60 * SECOND
    rig.deliver(1)
    rig.finish(rig.buffer.take())
    rig.now += 2 * SECOND
    assert rig.buffer.news() == []


def late(rig):
    return rig.buffer.record()["gather"]["late"]


def test_late_is_who_is_silent_for_much_longer_than_before():
    rig = Rig(BARRIER)
    rig.deliver(0, 2)
    rig.now += 9 * SECOND
    assert late(rig) == [], "processes start"
    rig.deliver(1)
    rig.finish(rig.buffer.take())
    rig.deliver(0, 2)
    rig.now += 17 * SECOND
    assert late(rig) == [], "it took nine seconds before"
    rig.now += 1 * SECOND
    assert late(rig) == [1]
    rig.buffer.news()
    assert late(rig) == [1], "also when it was told"
    rig.deliver(1)
    assert late(rig) == [], "the round is closed"


def test_rounds_close_without_the_silent_one():
    rig = without_actor_1()
    rig.deliver(0, 2)
    assert rig.buffer.take().num_items == 2


def test_it_may_finish_what_it_has_in_work_and_so_comes_back():
    rig = without_actor_1()
    rig.deliver(0, 2)
    assert [row[Order.CLOSED] for row in rig.orders] == [2, 0, 2]
    rig.finish(rig.buffer.take())
    rig.add(1, version=0)
    rig.token(1, version=0)
    rig.buffer.tick()
    assert absent(rig) == []
    rig.deliver(0, 2)
    assert rig.buffer.take() is None, "it counts again, so it is waited for"
    rig.deliver(1)
    assert rig.buffer.take().num_items == 3


def test_a_token_that_comes_too_late_costs_its_actor_no_slot():
    rig = Rig(BARRIER)
    rig.deliver(0, 1, 2)
    rig.finish(rig.buffer.take())
    rig.token(1, version=0)
    rig.buffer.tick()
    rig.deliver(0, 1, 2)
    assert rig.buffer.take().num_items == 3


def test_it_says_when_it_will_look_again():
    rig = without_actor_1()
    opened = rig.now
    assert rig.buffer.due_ns == opened + 4 * SECOND
    rig.now += SECOND
    rig.deliver(0)
    assert rig.buffer.due_ns == opened + 4 * SECOND, "actor 2 has been silent for longer"
    assert Rig(BARRIER).buffer.due_ns == 0, "nobody is left out"
