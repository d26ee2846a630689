"""What every Stream must do, in process or in shared memory."""

import os

import numpy as np
import pytest

from tests.unit.channels.ends import make_bell, make_bells
from tianji.channels.board import ShmBoardReader, ShmBoardWriter
from tianji.channels.confirmed import ConfirmedSender, ConfirmingReceiver
from tianji.channels.inproc import InprocStream
from tianji.channels.layout import STANDARD_FIELDS, Layout
from tianji.channels.memory import Segment
from tianji.channels.requested import AnsweringBatches, AskingSender, RequestedReader
from tianji.channels.requests import Answerer, Asker, RequestMemory
from tianji.channels.shm import ShmReceiver, ShmSender, StreamMemory
from tianji.errors import ChannelError
from tianji.types import Field, Stamp

LAYOUT = Layout((Field("obs", "float32", (3,), "obs"), *STANDARD_FIELDS), num_rows=4, num_envs=2)


def shm_ends(num_slots, num_lanes):
    memory = StreamMemory.create(LAYOUT, num_slots, num_lanes)
    bell = make_bell()
    receiver = ShmReceiver(memory, make_bells(num_lanes))
    return receiver, [ShmSender(memory, i, bell) for i in range(num_lanes)]


def inproc_ends(num_slots, num_lanes):
    stream = InprocStream(LAYOUT, num_slots, num_lanes)
    return stream, [stream.sender(i) for i in range(num_lanes)]


def confirmed_ends(num_slots, num_lanes):
    memory = StreamMemory.create(LAYOUT, num_slots, num_lanes)
    bell = make_bell()
    receiver = ConfirmingReceiver(memory, make_bells(num_lanes))
    return receiver, [ConfirmedSender(memory, i, bell) for i in range(num_lanes)]


class NoBatches:
    """A learner that is always between two versions."""

    def take(self):
        return None

    def finish(self, batch, version, priorities=None):
        raise AssertionError("there is no batch")


def asking_ends(num_slots, num_lanes):
    """Senders that ask for the policy before each item, and are answered at once."""
    receiver, senders = shm_ends(num_slots, num_lanes)
    board = os.memfd_create("board")
    ShmBoardWriter(board, 8).post(0, lambda payload: None)
    memory = RequestMemory.open(os.memfd_create("requests"), num_lanes, 0, 0)
    rings = [lambda: None] * num_lanes
    reader = ShmBoardReader(board)
    answering = AnsweringBatches(NoBatches(), Answerer(memory), reader.version, rings)
    policies = [RequestedReader(reader, Asker(memory, i, answering.take)) for i in range(num_lanes)]
    return receiver, [AskingSender(*pair) for pair in zip(senders, policies, strict=True)]


GOING_ON = {"inproc": inproc_ends, "shm": shm_ends, "asking": asking_ends}
"""Streams whose senders may begin another item while the last one was not taken yet."""
ALL = {**GOING_ON, "confirmed": confirmed_ends}


@pytest.fixture(params=ALL.values(), ids=ALL)
def ends(request):
    return request.param


@pytest.fixture(params=GOING_ON.values(), ids=GOING_ON)
def ends_going_on(request):
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


def test_several_grants_at_once_are_for_rounds_in_a_row_and_as_many_as_there_are(ends_going_on):
    receiver, (sender,) = ends_going_on(4, 1)
    assert receiver.grant(0, 5, 3) == 3
    grants = [send_one(sender, 1.0) for _ in range(3)]
    assert [grant.round for grant in grants] == [5, 6, 7]
    assert len({grant.slot for grant in grants}) == 3
    assert receiver.grant(0, 8, 3) == 1
    assert receiver.grant(0, 9, 3) == 0


def test_nothing_is_lost_doubled_or_reordered_per_sender(ends):
    receiver, senders = ends(6, 2)
    rng = np.random.default_rng(0)
    sent = [0, 0]
    seen = [[], []]
    for number in range(400):
        lane = int(rng.integers(2))
        receiver.grant(lane, number)
        if (grant := senders[lane].reserve()) is not None:
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
    assert min(sent) > 50
    assert seen == [list(range(sent[0])), list(range(sent[1]))]


def test_lanes_are_taken_in_turn(ends_going_on):
    receiver, senders = ends_going_on(8, 2)
    for lane in (0, 0, 0, 1):
        receiver.grant(lane, 0)
    for sender, count in ((senders[0], 3), (senders[1], 1)):
        for _ in range(count):
            grant = sender.reserve()
            sender.send(grant.slot, stamp(senders.index(sender), 0))
    order = [receiver.stamp(receiver.take()).actor for _ in range(4)]
    assert order[:2] == [0, 1]


def test_a_reset_lane_delivers_what_was_sent_and_gives_back_the_rest(ends_going_on):
    receiver, (sender,) = ends_going_on(4, 1)
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
    bells = make_bells(1)
    old = ShmReceiver(memory, bells)
    sender = ShmSender(memory, 0, make_bell())
    for number in range(2):
        old.grant(0, number)
    send_one(sender, 1.0)
    held = sender.reserve()
    del old
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


def test_a_slot_in_work_is_not_granted_because_an_old_entry_of_another_lane_names_it():
    memory, bells = StreamMemory.create(LAYOUT, 2, 2), make_bells(2)
    receiver = ShmReceiver(memory, bells)
    senders = [ShmSender(memory, lane, make_bell()) for lane in range(2)]
    receiver.grant(0, 0, 2)
    last = senders[0].reserve()
    del receiver
    receiver = ShmReceiver(memory, bells)
    senders[0].send(last.slot, stamp(0, 0))  # void, but the next entry of this lane now comes first
    senders[1].attach()
    receiver.grant(1, 0)
    written = senders[1].reserve()
    assert written.slot != last.slot
    del receiver
    receiver = ShmReceiver(memory, bells)
    senders[0].attach()
    assert receiver.grant(0, 1, 2) == 1
    assert senders[0].reserve().slot != written.slot
    senders[1].attach()
    assert receiver.is_attached(1)
    assert receiver.grant(0, 2, 2) == 1


ALL_SLOTS = [0, 1, 2, 3]


class Lane:
    """A stream with one lane, whose receiver and senders come and go."""

    def __init__(self, num_slots=4):
        self.memory = StreamMemory.create(LAYOUT, num_slots, 1)
        self.bells = make_bells(1)
        self.receiver = ShmReceiver(self.memory, self.bells)
        self.sender = self.new_sender()

    def new_sender(self):
        """As by another process, when the last one was killed."""
        self.sender = None
        self.sender = ShmSender(self.memory, 0, make_bell())
        return self.sender

    def free_slots(self):
        """All that can be granted; the lane works afterwards, as new."""
        self.sender.attach()
        slots = []
        while self.receiver.grant(0, 0):
            slots.append(self.sender.reserve().slot)
        self.receiver.reset_lane(0)
        self.sender.attach()
        return sorted(slots)

    def is_working(self):
        assert self.receiver.grant(0, 42)
        send_one(self.sender, 5.0)
        slot = self.receiver.take()
        self.receiver.release(slot)
        return self.receiver.stamp(slot).round == 42


def test_all_grants_of_a_killed_sender_come_back_when_its_successor_attaches_before_the_reset():
    lane = Lane()
    for number in range(3):
        lane.receiver.grant(0, number)
    lane.sender.reserve()
    lane.new_sender()
    assert lane.receiver.reset_lane(0) == []
    assert lane.free_slots() == ALL_SLOTS
    assert lane.is_working()


def test_what_a_killed_sender_sent_is_not_lost_when_its_successor_attaches_before_the_reset():
    lane = Lane()
    for number in range(3):
        lane.receiver.grant(0, number)
    sent = send_one(lane.sender, 1.0)
    lane.new_sender()
    assert lane.receiver.reset_lane(0) == [sent.slot]
    lane.receiver.release(sent.slot)
    assert lane.free_slots() == ALL_SLOTS


def test_a_successor_gets_nothing_before_the_reset():
    lane = Lane()
    for number in range(2):
        lane.receiver.grant(0, number)
    lane.sender.reserve()
    lane.new_sender()
    lane.receiver.grant(0, 7)
    lane.sender.attach()
    assert lane.sender.is_stale()
    assert lane.sender.reserve() is None
    lane.receiver.reset_lane(0)
    assert lane.free_slots() == ALL_SLOTS
    assert lane.is_working()


def test_the_slot_held_since_a_reset_comes_back_when_the_successor_dies_before_it_attaches():
    lane = Lane()
    lane.receiver.grant(0, 0)
    lane.sender.reserve()
    for _ in range(3):
        lane.receiver.reset_lane(0)
    assert lane.free_slots() == ALL_SLOTS


def test_the_slot_held_for_a_new_receiver_comes_back_when_the_sender_dies_before_it_attaches():
    lane = Lane()
    lane.receiver.grant(0, 0)
    lane.sender.reserve()
    lane.receiver = None
    lane.receiver = ShmReceiver(lane.memory, lane.bells)
    lane.receiver.reset_lane(0)
    lane.new_sender()
    assert lane.free_slots() == ALL_SLOTS


def test_no_slot_is_doubled_when_the_receiver_is_reborn_in_the_middle_of_a_last_send():
    lane = Lane()
    for number in range(2):
        lane.receiver.grant(0, number)
    grant, fence = lane.sender.reserve(), lane.sender._fence

    def be_reborn():
        lane.sender._fence = fence
        lane.receiver = None
        lane.receiver = ShmReceiver(lane.memory, lane.bells)

    lane.sender._fence = be_reborn
    lane.sender.send(grant.slot, stamp(0, 0))
    lane.receiver.reset_lane(0)
    lane.new_sender()
    assert lane.free_slots() == ALL_SLOTS


def test_a_lane_whose_only_slot_was_held_can_be_granted_it_again():
    lane = Lane(num_slots=1)
    lane.receiver.grant(0, 0)
    lane.sender.reserve()
    lane.receiver.reset_lane(0)
    assert not lane.receiver.grant(0, 1)
    lane.sender.attach()
    assert lane.receiver.grant(0, 1)


def with_layout(memory, layout):
    return StreamMemory(memory.slots, memory.lanes, layout, memory.num_slots, memory.num_lanes)


OTHER_NAMES = Layout((Field("seen", "float32", (3,), "obs"), *STANDARD_FIELDS), 4, 2)
LONGER = Layout(LAYOUT.fields, num_rows=5, num_envs=2)
WRONG_MEMORY = {
    "another layout of the same size": (lambda m: with_layout(m, OTHER_NAMES), "same plan"),
    "longer unrolls": (lambda m: with_layout(m, LONGER), "another run"),
    "more slots": (lambda m: StreamMemory(m.slots, m.lanes, LAYOUT, 3, 1), "another run"),
    "more lanes": (lambda m: StreamMemory(m.slots, m.lanes, LAYOUT, 2, 2), "another run"),
    "slots of another run": (
        lambda m: StreamMemory(StreamMemory.create(LAYOUT, 5, 1).slots, m.lanes, LAYOUT, 2, 1),
        "another run",
    ),
    "lanes that nobody made": (
        lambda m: StreamMemory(m.slots, Segment.create("x", m.lanes.nbytes), LAYOUT, 2, 1),
        "same plan",
    ),
}
ENDS = {
    "sender": lambda memory: ShmSender(memory, 0, make_bell()),
    "receiver": lambda memory: ShmReceiver(memory, make_bells(memory.num_lanes)),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("what", WRONG_MEMORY)
def test_an_end_with_another_plan_is_refused_and_nothing_is_lost(what, end):
    assert LAYOUT.slot_bytes == OTHER_NAMES.slot_bytes
    lane = Lane(num_slots=2)
    lane.receiver.grant(0, 0)
    sent = send_one(lane.sender, 1.0)
    make_wrong, why = WRONG_MEMORY[what]
    with pytest.raises(ChannelError, match=why):
        ENDS[end](make_wrong(lane.memory))
    assert lane.receiver.take() == sent.slot
    assert not lane.sender.is_stale()
    lane.receiver.release(sent.slot)
    assert lane.is_working()
