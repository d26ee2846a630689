"""One receiver, one sender per lane, one writer of a board: the second is told so, and harms
nothing."""

import os
import signal
import subprocess
import sys

import pytest

from tests.unit.channels.ends import held_elsewhere, in_child, make_bell, make_bells
from tianji.channels.board import ShmBoardReader, ShmBoardWriter
from tianji.channels.layout import STANDARD_FIELDS, Layout
from tianji.channels.memory import Seat, Segment
from tianji.channels.shm import ShmReceiver, ShmSender, StreamMemory
from tianji.errors import ChannelError
from tianji.types import Field, Stamp

LAYOUT = Layout((Field("obs", "float32", (3,), "obs"), *STANDARD_FIELDS), num_rows=4, num_envs=2)
NUM_LANES, NUM_SLOTS = 2, 4


class Stream:
    def __init__(self):
        self.memory = StreamMemory.create(LAYOUT, NUM_SLOTS, NUM_LANES)
        self.bells = make_bells(NUM_LANES)

    def receiver(self):
        return ShmReceiver(self.memory, self.bells)

    def sender(self, lane=0):
        return ShmSender(self.memory, lane, make_bell())


def carry_one(receiver, sender, number):
    """One unroll through the stream."""
    assert receiver.grant(0, number)
    grant = sender.reserve()
    sender.unroll(grant.slot)["obs"][:] = number
    sender.send(grant.slot, Stamp(0, number, 0, 0, 8, 0, 0))
    slot = receiver.take()
    assert receiver.stamp(slot).round == number
    assert (receiver.arrays["obs"][slot] == number).all()
    receiver.release(slot)


def test_a_second_receiver_is_refused_and_the_first_loses_nothing():
    stream = Stream()
    receiver, sender = stream.receiver(), stream.sender()
    for number in range(2):
        receiver.grant(0, number)
    sender.send(sender.reserve().slot, Stamp(0, 0, 0, 0, 8, 0, 0))
    half_written = sender.reserve()
    with pytest.raises(ChannelError, match="already a receiver of this stream"):
        stream.receiver()
    assert not sender.is_stale()
    sender.send(half_written.slot, Stamp(0, 1, 0, 0, 8, 0, 0))
    taken = [receiver.take() for _ in range(3)]
    assert [receiver.stamp(slot).round for slot in taken[:2]] == [0, 1]
    assert taken[2] is None
    for slot in taken[:2]:
        receiver.release(slot)
    carry_one(receiver, sender, 2)


def test_a_second_sender_on_a_lane_is_refused_and_the_first_loses_nothing():
    stream = Stream()
    receiver, sender = stream.receiver(), stream.sender()
    receiver.grant(0, 7)
    with pytest.raises(ChannelError, match="already a sender on lane 0"):
        stream.sender()
    grant = sender.reserve()
    assert grant.round == 7, "what the lane held was lost to the second"
    sender.send(grant.slot, Stamp(0, 7, 0, 0, 8, 0, 0))
    assert receiver.stamp(receiver.take()).round == 7


def test_lanes_have_senders_of_their_own():
    stream = Stream()
    senders = [stream.sender(lane) for lane in range(NUM_LANES)]
    receiver = stream.receiver()
    for lane, sender in enumerate(senders):
        sender.attach()
        assert receiver.is_attached(lane)


def test_a_second_writer_of_a_board_is_refused_and_what_is_posted_stays():
    fd = os.memfd_create("board")
    writer, reader = ShmBoardWriter(fd, 64), ShmBoardReader(fd)
    writer.post(3, lambda payload: payload.fill(3))
    with pytest.raises(ChannelError, match="already a writer of this board"):
        ShmBoardWriter(fd, 64)
    assert reader.latest(lambda payload: None) == 3
    writer.post(4, lambda payload: payload.fill(4))
    assert reader.latest(lambda payload: None) == 4


def test_boards_have_any_number_of_readers():
    fd = os.memfd_create("board")
    ShmBoardWriter(fd, 64).post(3, lambda payload: payload.fill(3))
    assert [ShmBoardReader(fd).latest(lambda payload: None) for _ in range(3)] == [3, 3, 3]


ENDS = {
    "receiver": lambda stream: stream.receiver(),
    "sender": lambda stream: stream.sender(),
    "writer": lambda stream: ShmBoardWriter(stream.board_fd, 64),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_seat_is_taken_while_another_process_has_it_and_free_when_that_is_killed(end):
    stream = Stream()
    stream.board_fd = os.memfd_create("board")
    with held_elsewhere(lambda: ENDS[end](stream)), pytest.raises(ChannelError, match="only one"):
        ENDS[end](stream)
    ENDS[end](stream)


def test_a_stream_goes_on_after_its_receiver_and_then_its_sender_was_killed():
    stream = Stream()
    with held_elsewhere(stream.receiver):
        sender = stream.sender()
    receiver = stream.receiver()
    assert sender.is_stale()
    sender.attach()
    carry_one(receiver, sender, 1)
    del sender
    with held_elsewhere(stream.sender):
        pass
    receiver.reset_lane(0)
    carry_one(receiver, stream.sender(), 2)


def test_a_seat_is_free_when_its_holder_is_gone_and_costs_no_descriptor_then():
    segment = Segment.create("test", 4096)
    before = len(os.listdir("/proc/self/fd"))
    seat = Seat(segment, 0, "somebody")
    del seat
    for _ in range(3):
        with pytest.raises(ChannelError):
            held = Seat(segment, 0, "somebody"), Seat(segment, 0, "somebody")
            del held
    Seat(segment, 0, "somebody")
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_program_that_the_holder_started_does_not_keep_the_seat():
    """Environments start simulators, which may outlive the actor that was killed."""
    segment = Segment.create("test", 4096)
    seat = Seat(segment, 0, "somebody")
    simulator = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    del seat
    Seat(segment, 0, "somebody")
    simulator.send_signal(signal.SIGKILL)
    simulator.communicate()


def _fork_a_child_and_die(take, words):
    held = take()
    child = os.fork()
    if child == 0:
        signal.pause()
    words[1] = child
    words[0] = 1 + (held is None)
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_child_that_outlives_the_holder_does_not_keep_its_seat():
    """As a simulator does that an environment forked."""
    segment = Segment.create("test", 4096)
    words = segment.words(0, 2)
    holder = in_child(_fork_a_child_and_die, lambda: Seat(segment, 0, "somebody"), words)
    holder.join()
    try:
        assert words[0] == 1, "the seat was not taken"
        Seat(segment, 0, "somebody")
    finally:
        if words[1]:
            os.kill(words[1], signal.SIGKILL)
