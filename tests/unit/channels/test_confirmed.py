"""A confirmed stream: after each item its sender waits until the receiver has taken it."""

from tests.contracts.test_stream import LAYOUT, confirmed_ends, send_one, stamp
from tests.unit.channels.ends import LONG_S, in_child, make_bell, make_bells, wait_for
from tianji.channels.confirmed import ConfirmedSender, ConfirmingReceiver
from tianji.channels.memory import Segment
from tianji.channels.shm import StreamMemory


def test_a_sender_begins_nothing_before_its_last_item_was_taken():
    receiver, (sender,) = confirmed_ends(4, 1)
    receiver.grant(0, 0, 3)
    assert not sender.is_waiting()
    for number in range(3):
        send_one(sender, float(number))
        assert sender.is_waiting()
        assert sender.reserve() is None
        assert receiver.stamp(receiver.take()).round == number
        assert not sender.is_waiting()


def test_each_lane_waits_for_its_own_items_only():
    receiver, (one, other) = confirmed_ends(4, 2)
    for lane in (0, 1):
        receiver.grant(lane, 0, 2)
    send_one(one, 1.0)
    assert one.is_waiting()
    assert other.reserve() is not None
    receiver.take()
    assert one.reserve() is not None


def test_an_item_wakes_a_receiver_that_expects_more():
    memory, bell = StreamMemory.create(LAYOUT, 4, 1), make_bell()
    receiver = ConfirmingReceiver(memory, make_bells(1))
    sender = ConfirmedSender(memory, 0, bell)
    receiver.grant(0, 0, 4)
    receiver.expect(4)
    bell.arm()
    send_one(sender, 1.0)
    assert bell.wait(LONG_S)


def test_a_sender_waits_for_nothing_that_a_dead_receiver_did_not_take():
    memory, bells = StreamMemory.create(LAYOUT, 4, 1), make_bells(1)
    receiver = ConfirmingReceiver(memory, bells)
    sender = ConfirmedSender(memory, 0, make_bell())
    receiver.grant(0, 0, 2)
    send_one(sender, 1.0)
    del receiver
    receiver = ConfirmingReceiver(memory, bells)
    assert sender.is_stale()
    sender.attach()
    assert not sender.is_waiting()
    assert receiver.grant(0, 5)
    assert sender.reserve().round == 5


def test_a_reset_lane_delivers_what_was_sent_and_its_successor_waits_for_nothing():
    receiver, senders = confirmed_ends(4, 1)
    receiver.grant(0, 0, 3)
    sent = send_one(senders[0], 1.0)
    assert receiver.reset_lane(0) == [sent.slot]
    senders[0].attach()
    assert not senders[0].is_waiting()
    assert receiver.grant(0, 1)
    assert senders[0].reserve() is not None


def _send_on(memory, receiver_bell, own_bell, count):
    sender = ConfirmedSender(memory, 0, receiver_bell)
    for number in range(count):
        wait_for(
            own_bell, lambda: (sender.is_stale() and sender.attach()) or not sender.is_waiting()
        )
        grants = []
        wait_for(own_bell, lambda grants=grants: grants.append(sender.reserve()) or grants[-1])
        grant = grants[-1]
        sender.unroll(grant.slot)["obs"][:] = number
        sender.send(grant.slot, stamp(0, number))


def test_a_sender_that_sleeps_is_woken_by_the_confirmation():
    """Its process sleeps with no limit in time: only the bell can wake it."""
    count, bells = 200, make_bells(2)
    memory = StreamMemory.create(LAYOUT, 3, 1)
    receiver = ConfirmingReceiver(memory, bells[1:])
    seen = Segment.create("seen", 8).words(0, 1)
    child = in_child(_send_on, memory, bells[0], bells[1], count)

    def receive():
        receiver.grant(0, 0, 1)
        while (slot := receiver.take()) is not None:
            assert (receiver.arrays["obs"][slot] == seen[0]).all()
            seen[0] += 1
            receiver.release(slot)
            receiver.grant(0, 0, 1)
        return seen[0] == count

    wait_for(bells[0], receive)
    child.join(LONG_S)
    assert child.exitcode == 0
