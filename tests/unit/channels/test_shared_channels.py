"""What only the channels in shared memory have: sizes, rings, bells, and copies that are lapped."""

import os

import numpy as np
import pytest

from tests.fakes.scripted import scripted_layout
from tests.unit.channels.ends import LONG_S, make_bell, make_bells
from tianji.channels import board
from tianji.channels.board import NUM_COPIES, ShmBoardReader, ShmBoardWriter, board_bytes
from tianji.channels.shm import ShmReceiver, ShmSender, StreamMemory, lane_bytes
from tianji.types import Stamp

LAYOUT = scripted_layout(2, 1)


class Rig:
    def __init__(self, num_slots=3, num_lanes=2):
        self.memory = StreamMemory.create(LAYOUT, num_slots, num_lanes)
        self.bell = make_bell()
        self.actor_bells = make_bells(num_lanes)
        self.receiver = ShmReceiver(self.memory, self.actor_bells)
        self.senders = [ShmSender(self.memory, i, self.bell) for i in range(num_lanes)]
        self.arm()

    def arm(self):
        """Everybody is about to sleep, and has answered what came before."""
        for bell in (self.bell, *self.actor_bells):
            bell.wait(0.0)
            bell.arm()

    def send(self, lane, number):
        grant = self.senders[lane].reserve()
        self.senders[lane].send(grant.slot, Stamp(lane, number, 0, 0, 1, 0, 0))
        return grant.slot


def parts_of(lane):
    return [part.cast("B") for part in (lane.head, lane.sent.memory, lane.granted.memory)]


def test_the_lanes_of_a_stream_do_not_overlap():
    memory = StreamMemory.create(LAYOUT, num_slots=5, num_lanes=3)
    lanes = [memory.lane(index) for index in range(3)]
    assert memory.lanes.nbytes == 3 * lane_bytes(5)
    for index, lane in enumerate(lanes):
        for number, part in enumerate(parts_of(lane)):
            part[:] = bytes([10 * index + number]) * len(part)
    for index, lane in enumerate(lanes):
        for number, part in enumerate(parts_of(lane)):
            assert set(part) == {10 * index + number}


def test_rings_wrap_around_many_times_without_a_loss():
    rig = Rig(num_slots=3, num_lanes=1)
    for number in range(50):
        assert rig.receiver.grant(0, number)
        slot = rig.send(0, number)
        assert rig.receiver.take() == slot
        assert rig.receiver.stamp(slot).round == number
        rig.receiver.release(slot)


def test_a_lane_can_hold_every_slot_there_is():
    rig = Rig(num_slots=4, num_lanes=2)
    assert [rig.receiver.grant(1, number) for number in range(5)] == [True] * 4 + [False]
    sent = [rig.send(1, number) for number in range(4)]
    assert [rig.receiver.take() for _ in range(5)] == [*sent, None]


def test_a_grant_wakes_the_actor_and_an_unroll_wakes_the_buffer():
    rig = Rig()
    rig.receiver.grant(1, 0)
    assert not rig.actor_bells[0].wait(0.0)
    assert rig.actor_bells[1].wait(LONG_S)
    assert not rig.bell.wait(0.0)
    rig.arm()
    rig.send(1, 0)
    assert rig.bell.wait(LONG_S)


def test_news_for_all_wakes_every_actor_and_not_the_buffer():
    rig = Rig()
    rig.receiver.wake_senders()
    assert all(bell.wait(LONG_S) for bell in rig.actor_bells)
    assert not rig.bell.wait(0.0)


def test_a_reset_wakes_the_actor_and_its_answer_wakes_the_buffer():
    rig = Rig()
    rig.receiver.reset_lane(0)
    assert rig.actor_bells[0].wait(LONG_S)
    assert not rig.receiver.is_attached(0)
    rig.senders[0].attach()
    assert rig.bell.wait(LONG_S)
    assert rig.receiver.is_attached(0)


def test_a_taken_slot_is_not_granted_until_it_is_released():
    rig = Rig(num_slots=2, num_lanes=1)
    taken = rig.receiver._free.pop()
    assert [rig.receiver.grant(0, number) for number in range(2)] == [True, False]
    assert rig.senders[0].reserve().slot != taken
    rig.receiver.release(taken)
    assert rig.receiver.grant(0, 1)
    assert rig.senders[0].reserve().slot == taken


def test_a_stamp_arrives_with_every_number_it_was_sent_with():
    rig = Rig(num_lanes=1)
    stamp = Stamp(0, 2**62, -1, 4, 5, -(2**62), 7)
    rig.receiver.grant(0, 0)
    rig.senders[0].send(rig.senders[0].reserve().slot, stamp)
    assert rig.receiver.stamp(rig.receiver.take()) == stamp


@pytest.mark.parametrize("size", [1, 64, 100])
def test_a_board_of_any_size_holds_its_copies_apart(size):
    fd = os.memfd_create("board")
    writer, reader = ShmBoardWriter(fd, size), ShmBoardReader(fd)
    assert os.fstat(fd).st_size == board_bytes(size)
    for version in range(2 * NUM_COPIES):
        writer.post(version, lambda payload, version=version: payload.fill(version))
        seen = []
        assert reader.latest(lambda payload: seen.append(payload.copy())) == version  # noqa: B023
        assert (seen[-1] == version).all() and seen[-1].shape == (size,)


def test_a_reader_that_was_lapped_reads_again():
    fd = os.memfd_create("board")
    writer, reader = ShmBoardWriter(fd, 8), ShmBoardReader(fd)
    writer.post(0, lambda payload: payload.fill(0))
    seen = []

    def slow_copy(payload):
        first_half = payload[:4].copy()
        if not seen:
            for version in range(1, NUM_COPIES + 1):
                writer.post(version, lambda payload, version=version: payload.fill(version))
        seen.append(np.concatenate([first_half, payload[4:]]).tolist())

    assert reader.latest(slow_copy) == NUM_COPIES
    assert seen[0] == [0] * 4 + [NUM_COPIES] * 4, "the writer did not lap the reader"
    assert seen[1:] == [[NUM_COPIES] * 8]


def test_a_reader_does_not_take_what_the_writer_is_writing_now():
    """The writer is half way in the place that the reader copies; here it dies there."""
    fd = os.memfd_create("board")
    writer, reader = ShmBoardWriter(fd, 8), ShmBoardReader(fd)
    writer.post(0, lambda payload: payload.fill(0))
    seen = []

    def die_half_way(payload):
        payload[:4] = NUM_COPIES
        raise KeyboardInterrupt

    def slow_copy(payload):
        if not seen:
            for version in range(1, NUM_COPIES):
                writer.post(version, lambda payload, version=version: payload.fill(version))
            with pytest.raises(KeyboardInterrupt):
                writer.post(NUM_COPIES, die_half_way)
        seen.append(payload.tolist())

    assert reader.latest(slow_copy) == NUM_COPIES - 1
    assert seen == [[NUM_COPIES] * 4 + [0] * 4, [NUM_COPIES - 1] * 8]


def test_a_reader_that_was_not_lapped_reads_once_although_there_is_something_newer():
    fd = os.memfd_create("board")
    writer, reader = ShmBoardWriter(fd, 8), ShmBoardReader(fd)
    writer.post(0, lambda payload: payload.fill(0))
    seen = []

    def slow_copy(payload):
        writer.post(1, lambda payload: payload.fill(1))
        seen.append(payload.tolist())

    assert reader.latest(slow_copy) == 0
    assert seen == [[0] * 8]


def test_no_version_is_given_twice_when_a_writer_died_in_its_last_move():
    """A reader may have picked it up already, because it saw that there was some newer one."""
    fd = os.memfd_create("board")
    writer, reader = ShmBoardWriter(fd, 8), ShmBoardReader(fd)
    for version in range(2):
        writer.post(version, lambda payload, version=version: payload.fill(version))
    writer._board.words[board._VERSION] = 0
    assert reader.latest(lambda payload: None) == 1
    del writer
    assert ShmBoardWriter(fd, 8).version() == 1


def test_a_writer_that_died_before_the_board_had_its_header_is_replaced():
    fd = os.memfd_create("board")
    os.ftruncate(fd, board_bytes(8))
    reader = ShmBoardReader(fd)
    assert reader.version() == -1
    writer = ShmBoardWriter(fd, 8)
    assert writer.version() == reader.version() == -1
    writer.post(0, lambda payload: payload.fill(5))
    assert reader.latest(lambda payload: None) == 0
