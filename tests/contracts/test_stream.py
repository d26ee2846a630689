"""What every Stream must do, in process or in shared memory."""

import numpy as np
import pytest

from tianji.channels.inproc import InprocStream
from tianji.channels.layout import STANDARD_FIELDS, Layout
from tianji.channels.memory import Bell, Segment, Semaphore
from tianji.channels.shm import ShmReceiver, ShmSender, StreamMemory
from tianji.errors import ChannelError
from tianji.types import Field, Stamp

LAYOUT = Layout((Field("obs", "float32", (3,), "obs"), *STANDARD_FIELDS), num_rows=4, num_envs=2)


def make_bell():
    semaphore = Semaphore(Segment.create("bell", 64), 0)
    semaphore.initialise()
    return Bell(semaphore)


def shm_ends(num_slots, num_lanes):
    memory = StreamMemory.create(LAYOUT, num_slots, num_lanes)
    bell = make_bell()
    receiver = ShmReceiver(memory, [make_bell() for _ in range(num_lanes)])
    return receiver, [ShmSender(memory, i, bell) for i in range(num_lanes)]


def inproc_ends(num_slots, num_lanes):
    stream = InprocStream(LAYOUT, num_slots, num_lanes)
    return stream, [stream.sender(i) for i in range(num_lanes)]


@pytest.fixture(params=[inproc_ends, shm_ends], ids=["inproc", "shm"])
def ends(request):
    return request.param


def stamp(actor, number):
    return Stamp(actor, number, number, number, 8, 1, 2)


def send_one(sender, value):
    grant = sender.reserve()
    sender.unroll(grant.slot)["obs"][:] = value
    sender.send(grant.slot, stamp(0, grant.round))
    return grant


def test_what_is_written_in_place_is_read_in_place(ends):
    receiver, (sender,) = ends(3, 1)
    assert receiver.grant(0, 7)
    grant = send_one(sender, 2.5)
    slot = receiver.take()
    assert slot == grant.slot
    assert receiver.stamp(slot) == stamp(0, 7)
    assert (receiver.arrays["obs"][slot] == 2.5).all()


def test_without_a_grant_an_actor_is_paced_and_nothing_arrives(ends):
    receiver, (sender,) = ends(3, 1)
    assert sender.reserve() is None
    assert receiver.take() is None


def test_slots_are_bounded_and_come_back_when_released(ends):
    receiver, (sender,) = ends(2, 1)
    assert [receiver.grant(0, i) for i in range(3)] == [True, True, False]
    send_one(sender, 1.0)
    slot = receiver.take()
    assert not receiver.grant(0, 3)
    receiver.release(slot)
    assert receiver.grant(0, 3)


def test_nothing_is_lost_doubled_or_reordered_per_sender(ends):
    receiver, senders = ends(6, 2)
    rng = np.random.default_rng(0)
    sent = [0, 0]
    seen = [[], []]
    for number in range(400):
        lane = int(rng.integers(2))
        if receiver.grant(lane, number):
            grant = senders[lane].reserve()
            senders[lane].unroll(grant.slot)["obs"][:] = sent[lane]
            senders[lane].send(grant.slot, stamp(lane, sent[lane]))
            sent[lane] += 1
        if rng.random() < 0.6 and (slot := receiver.take()) is not None:
            found = receiver.stamp(slot)
            assert (receiver.arrays["obs"][slot] == found.round).all()
            seen[found.actor].append(found.round)
            receiver.release(slot)
    while (slot := receiver.take()) is not None:
        seen[receiver.stamp(slot).actor].append(receiver.stamp(slot).round)
    assert seen == [list(range(sent[0])), list(range(sent[1]))]


def test_lanes_are_taken_in_turn(ends):
    receiver, senders = ends(8, 2)
    for lane in (0, 0, 0, 1):
        receiver.grant(lane, 0)
    for sender, count in ((senders[0], 3), (senders[1], 1)):
        for _ in range(count):
            grant = sender.reserve()
            sender.send(grant.slot, stamp(senders.index(sender), 0))
    order = [receiver.stamp(receiver.take()).actor for _ in range(4)]
    assert order[:2] == [0, 1]


def test_a_reset_lane_delivers_what_was_sent_and_gives_back_the_rest(ends):
    receiver, (sender,) = ends(4, 1)
    for number in range(3):
        receiver.grant(0, number)
    sent = send_one(sender, 1.0)
    half_written = sender.reserve()
    sender.unroll(half_written.slot)["obs"][0] = 9.0
    assert receiver.reset_lane(0) == [sent.slot]
    assert sender.is_stale()
    sender.send(half_written.slot, stamp(0, 1))
    assert receiver.take() is None, "an item of before the reset was delivered"
    sender.attach()
    assert not sender.is_stale()
    assert sender.reserve() is None, "a grant of before the reset is still good"
    receiver.release(sent.slot)
    assert [receiver.grant(0, i) for i in range(5)] == [True] * 4 + [False]


def test_after_a_reset_the_lane_works_as_new(ends):
    receiver, (sender,) = ends(3, 1)
    receiver.grant(0, 0)
    receiver.reset_lane(0)
    sender.attach()
    for number in range(10):
        assert receiver.grant(0, number)
        send_one(sender, float(number))
        slot = receiver.take()
        assert receiver.stamp(slot).round == number
        receiver.release(slot)


def test_the_slot_a_lost_sender_was_writing_is_not_granted_before_it_has_let_go():
    receiver, senders = shm_ends(2, 2)
    receiver.grant(0, 0)
    held = senders[0].reserve()
    receiver.reset_lane(0)
    granted = [receiver.grant(1, i) for i in range(2)]
    assert granted == [True, False]
    assert senders[1].reserve().slot != held.slot
    senders[0].attach()
    assert receiver.is_attached(0)
    assert receiver.grant(1, 2)
    assert senders[1].reserve().slot == held.slot


def test_a_new_receiver_takes_over_and_old_entries_are_void():
    memory = StreamMemory.create(LAYOUT, 4, 1)
    bells = [make_bell()]
    old = ShmReceiver(memory, bells)
    sender = ShmSender(memory, 0, make_bell())
    for number in range(2):
        old.grant(0, number)
    send_one(sender, 1.0)
    held = sender.reserve()
    new = ShmReceiver(memory, bells)
    assert new.take() is None
    assert not new.grant(0, 5), "granted to a sender that has not noticed yet"
    assert sender.is_stale()
    sender.send(held.slot, stamp(0, 1))
    assert new.take() is None
    sender.attach()
    assert [new.grant(0, i) for i in range(5)] == [True] * 4 + [False]
    send_one(sender, 3.0)
    assert (new.arrays["obs"][new.take()] == 3.0).all()


def test_two_layouts_on_one_stream_are_refused():
    memory = StreamMemory.create(LAYOUT, 2, 1)
    other = Layout(LAYOUT.fields, num_rows=5, num_envs=2)
    wrong = StreamMemory(memory.slots, memory.lanes, other, 2, 1)
    with pytest.raises(ChannelError, match="same plan"):
        ShmSender(wrong, 0, make_bell())
