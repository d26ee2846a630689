"""Actors that are late, missing or replaced: nobody waits for long, nothing is lost unseen."""

import itertools

from tests.unit.buffer.rig import Rig, turns
from tianji.buffer import window as late
from tianji.channels.gauges import Gauge
from tianji.channels.orders import Order
from tianji.types import Stamp


def test_an_actor_that_is_not_there_yet_keeps_its_share():
    rig = Rig(point=(2, 0, 0))
    rig.stream.missing.add(1)
    rig.buffer.tick()
    assert rig.granted() == [[0], []]
    rig.stream.missing.clear()
    rig.buffer.tick()
    assert rig.granted() == [[0], [0]]


def test_the_share_of_an_actor_that_was_given_up_goes_to_the_others():
    rig = Rig(point=(2, 0, 0))
    rig.rows.actors[0].supervision[Order.GIVEN_UP] = 1
    rig.buffer.tick()
    assert rig.granted() == [[], [0, 1]]


def test_the_share_of_an_actor_that_died_goes_to_the_others_until_it_is_back():
    rig = Rig(point=(2, 0, 1))
    rig.buffer.tick()
    rig.stream.missing.add(0)
    rig.replace(0)
    rig.buffer.tick()
    assert rig.granted() == [[], [0, 1, 2, 3]]
    rig.stream.missing.clear()
    rig.make_version(1, 1)
    assert rig.granted() == [[0, 1], [2, 3]]


def test_serial_training_waits_for_the_successor_of_an_actor_that_died():
    rig = Rig(point=(2, 0, 0))
    rig.buffer.tick()
    rig.stream.missing.add(0)
    rig.replace(0)
    rig.buffer.tick()
    assert rig.granted() == [[], [0]]
    rig.stream.missing.clear()
    rig.buffer.tick()
    assert rig.granted() == [[0], [0]]


def test_an_actor_that_dies_before_it_was_there_is_owed_nothing():
    rig = Rig(point=(2, 0, 1))
    rig.stream.missing.add(0)
    rig.buffer.tick()
    assert rig.granted() == [[], [0, 1]]
    rig.replace(0)
    rig.buffer.tick()
    rig.stream.missing.clear()
    rig.buffer.tick()
    assert rig.granted() == [[], [0, 1, 2, 3]], "what it was owed was given to the other"
    rig.make_version(1, 1)
    assert rig.granted() == [[0, 1], [2, 3]]


def test_a_grant_for_which_no_slot_is_free_is_made_later():
    rig = Rig(point=(2, 0, 1), num_slots=3)
    rig.buffer.tick()
    assert sorted(map(len, rig.granted())) == [1, 2]
    rig.make_version(0, 1)
    rig.buffer.tick()
    assert sorted(itertools.chain(*rig.granted())) == [1, 1, 2], "rounds have a gap or a double"


def test_after_a_reset_what_was_sent_is_kept_and_the_rest_is_made_again():
    rig = Rig(point=(2, 0, 1))
    rig.buffer.tick()
    rig.send(0)
    rig.senders[0].reserve()
    rig.replace(0)
    assert rig.buffer.tick()
    assert rig.orders[0][Order.RESETS] == 1
    assert rig.granted() == [[1], [0, 1]], "rounds have a gap or a double"
    rig.send(1)
    assert turns(rig.take()) == [(0, 0), (0, 1)]


def test_a_lane_is_reset_once_for_every_replacement():
    rig = Rig(point=(2, 0, 1))
    rig.buffer.tick()
    rig.replace(1)
    rig.buffer.tick()
    assert not rig.buffer.tick(), "the lane was reset again"
    rig.replace(1)
    assert rig.buffer.tick()
    assert rig.granted() == [[0, 1], [0, 1]]


def in_work_since(rig, actor, version):
    """What an actor shows while it makes an unroll that began under a version."""
    rig.actor_gauges[actor][Gauge.STARTED_VERSION] = version + 1
    return rig.senders[actor].reserve()


def overtaken():
    """Actor 0 is still at its first unroll, of version 0, when version 2 is due; max_lag is 1."""
    clock = [100_000_000_000]
    rig = Rig(point=(1, 0, 1), max_lag=1, now_ns=lambda: clock[0])
    rig.buffer.tick()
    grant = in_work_since(rig, 0, version=0)
    rig.make_version(1)
    rig.send(1)
    return rig, grant, clock


def deliver(rig, grant):
    """Actor 0 hands over the unroll it has in work, which version 0 began."""
    rig.senders[0].send(grant.slot, Stamp(0, grant.round, 0, 1, 2, 0, 0))
    rig.actor_gauges[0][Gauge.STARTED_VERSION] = 0


def test_an_unroll_that_would_be_too_old_is_hurried_and_waited_for():
    rig, grant, _ = overtaken()
    assert rig.take() is None
    assert rig.orders[0][Order.HURRY] == grant.round + 1
    assert rig.orders[1][Order.HURRY] == 0
    deliver(rig, grant)
    assert turns(rig.take()) == [(0, 0)], "the one that would be too old comes first"
    assert rig.buffer.discarded == 0
    assert rig.buffer.lag.summary()["max"] == 1


def test_the_time_that_a_version_waits_for_late_unrolls_is_counted():
    rig, grant, clock = overtaken()
    assert rig.take() is None
    clock[0] += 3_000_000
    assert rig.take() is None
    clock[0] += 4_000_000
    deliver(rig, grant)
    rig.take()
    assert rig.gauges[Gauge.LATE_NS] == 7_000_000


def test_patience_ends_and_what_comes_too_late_is_discarded_and_counted():
    rig, grant, clock = overtaken()
    assert rig.take() is None
    clock[0] += late.PATIENCE_NS
    batch = rig.take()
    assert turns(batch) == [(1, 1)]
    rig.finish(batch)
    deliver(rig, grant)
    before = sum(map(len, rig.granted()))
    assert rig.take() is None, "what is older than the bound was taken"
    assert rig.buffer.discarded == 1
    assert len(rig.stream._free) + sum(map(len, rig.stream.granted)) == 12, "a slot is lost"
    assert sum(map(len, rig.granted())) == before + 1, "what was discarded is made again"


def test_an_unroll_that_will_be_in_time_holds_up_nobody():
    rig = Rig(point=(1, 0, 1), max_lag=1)
    rig.buffer.tick()
    in_work_since(rig, 0, version=0)
    rig.send(1)
    assert rig.take() is not None
    assert rig.orders[0][Order.HURRY] == 0


def test_what_arrives_while_the_batch_is_being_made_up_is_seen():
    """It was in work a moment ago: its actor has sent it and shows nothing any more."""
    rig = Rig(point=(1, 0, 1), max_lag=1)
    rig.buffer.tick()
    rig.send(1)
    rig.buffer.tick()
    rig.send(0)
    assert turns(rig.buffer.take()) == [(0, 0)]


def test_a_replaced_actor_does_not_hold_up_the_next_version():
    rig, *_ = overtaken()
    rig.replace(0)
    rig.actor_gauges[0][Gauge.STARTED_VERSION] = 0  # a successor starts with nothing in work
    rig.senders[0].attach()
    batch = rig.take()
    assert batch is not None, "the version waits for an unroll that died with its actor"


def test_a_replaced_actor_is_not_hurried_for_what_its_predecessor_did_not_finish():
    rig, grant, _ = overtaken()
    assert rig.take() is None
    rig.replace(0)
    rig.buffer.tick()
    assert rig.granted()[0][0] == grant.round
    assert rig.orders[0][Order.HURRY] <= grant.round


def test_a_new_buffer_hurries_nobody_for_what_the_old_one_waited_for():
    rig, *_ = overtaken()
    rig.orders[0][Order.HURRY] = 180
    rig.make_buffer((1, 0, 1), max_lag=1)
    assert rig.orders[0][Order.HURRY] == 0


def test_an_unroll_of_a_lost_lane_that_comes_late_is_given_up_and_counted_once():
    rig = Rig(point=(2, 0, 1), num_slots=5)
    rig.buffer.tick()
    late = rig.senders[0].reserve()
    rig.replace(0)
    rig.buffer.tick()
    rig.send(0), rig.send(1)
    rig.buffer.tick()
    slot = rig.stream._free.pop()
    rig.stream.stamps[slot] = Stamp(0, late.round, 0, 0, 8, 0, 0)
    rig.stream.sent[0].append(slot)
    rig.stream.ready.append(0)
    before = rig.window._started()
    rig.window.lanes.give(1)  # and not delivered, for want of a slot
    rig.buffer.tick()
    assert not rig.window.lanes._owed, "the slot that is free again is granted"
    assert rig.window._started() == before + 1, "what is under way did not change otherwise"
    assert rig.gauges[Gauge.ITEMS] == 2
    assert rig.buffer.discarded == 1
    assert turns(rig.take()) == [(0, 0), (0, 1)]
