"""A receiver that expects several unrolls sleeps until they are there, and never for ever."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.scripted import scripted_layout
from tests.unit.buffer.rig import Rig
from tests.unit.channels.ends import make_bell, make_bells
from tianji.channels.inproc import InprocStream
from tianji.channels.shm import ShmReceiver, ShmSender, StreamMemory
from tianji.types import Stamp

NUM_LANES, NUM_GRANTS = 3, 8


class Ends:
    """Lanes in shared memory, all of them with grants, and a receiver that is about to sleep."""

    def __init__(self, num_lanes=NUM_LANES, num_grants=NUM_GRANTS):
        layout = scripted_layout(1, 1)
        memory = StreamMemory.create(layout, num_lanes * num_grants, num_lanes)
        self.bell = make_bell()
        self.receiver = ShmReceiver(memory, make_bells(num_lanes))
        self.senders = [ShmSender(memory, lane, self.bell) for lane in range(num_lanes)]
        for segment in (memory.slots, memory.lanes):
            segment.close()
        for lane in range(num_lanes):
            assert self.receiver.grant(lane, 0, num_grants) == num_grants

    def send(self, lane, count=1):
        for _ in range(count):
            slot = self.senders[lane].reserve().slot
            self.senders[lane].send(slot, Stamp(lane, 0, 0, 0, 1, 0, 0))

    def take_all(self):
        return len([slot for slot in iter(self.receiver.take, None)])

    def sleep_until(self, count):
        self.receiver.expect(count)
        self.bell.arm()

    def is_woken(self):
        return self.bell.wait(0.0)


def test_a_sleeping_receiver_is_woken_when_its_share_has_arrived_and_not_before():
    ends = Ends(num_lanes=1)
    ends.sleep_until(3)
    ends.send(0, 2)
    assert not ends.is_woken()
    ends.send(0)
    assert ends.is_woken()


def test_what_was_read_before_does_not_count():
    ends = Ends(num_lanes=1)
    ends.send(0, 2)
    assert ends.take_all() == 2
    ends.sleep_until(2)
    ends.send(0)
    assert not ends.is_woken()
    ends.send(0)
    assert ends.is_woken()


def test_who_expects_one_is_woken_by_the_first_of_any_lane():
    for lane in range(NUM_LANES):
        ends = Ends()
        ends.sleep_until(1)
        ends.send(lane)
        assert ends.is_woken()


def test_a_receiver_that_expects_nothing_special_is_woken_by_the_first():
    ends = Ends()
    ends.bell.arm()
    ends.send(0)
    assert ends.is_woken()


def test_a_sender_without_a_grant_wakes_the_receiver():
    ends = Ends(num_lanes=2, num_grants=2)
    ends.sleep_until(8)
    ends.send(0, 2)
    assert not ends.is_woken()
    assert ends.senders[0].reserve() is None
    assert ends.is_woken()
    assert ends.take_all() == 2


def test_a_sender_without_a_grant_says_so_once():
    ends = Ends(num_lanes=1, num_grants=2)
    ends.sleep_until(8)
    ends.send(0, 2)
    for is_first in (True, False, False):
        assert ends.senders[0].reserve() is None
        assert ends.is_woken() is is_first
        ends.bell.arm()


def test_a_lane_that_is_reset_wakes_the_receiver_when_its_next_sender_attaches():
    ends = Ends(num_lanes=1)
    ends.sleep_until(5)
    ends.receiver.reset_lane(0)
    ends.senders[0].attach()
    assert ends.is_woken()


@given(st.data(), st.sampled_from([4, 5, 7]))
def test_in_whatever_order_they_come_all_are_noticed(data, count):
    """Where every lane had brought less than its share, there would be fewer than expected."""
    ends = Ends()
    order = data.draw(st.lists(st.integers(0, NUM_LANES - 1), min_size=count, max_size=count))
    left = count
    ends.sleep_until(left)
    for lane in order:
        ends.send(lane)
        if ends.is_woken():
            left -= ends.take_all()
            ends.sleep_until(left)
    assert left == 0, "all had arrived, and the receiver slept on"


@given(st.lists(st.integers(0, NUM_LANES - 1), max_size=7), st.sampled_from([4, 5, 7]))
def test_nobody_is_woken_before_a_lane_has_brought_its_share(order, count):
    ends = Ends()
    ends.sleep_until(count)
    for number, lane in enumerate(order, 1):
        ends.send(lane)
        share = -(-count // NUM_LANES)
        if max(map(order[:number].count, range(NUM_LANES))) >= share:
            assert ends.is_woken()
            return
        assert not ends.is_woken()


def test_expecting_changes_nothing_in_one_process():
    stream = InprocStream(scripted_layout(1, 1), 2, 1)
    stream.expect(5)
    stream.grant(0, 0)
    sender = stream.sender(0)
    sender.send(sender.reserve().slot, Stamp(0, 0, 0, 0, 1, 0, 0))
    assert stream.take() is not None


class Expecting:
    """A buffer, and what it last expected."""

    def __init__(self, monkeypatch, **options):
        self.rig = Rig(**options)
        self._asked = []
        monkeypatch.setattr(self.rig.stream, "expect", self._asked.append, raising=False)

    def expects(self):
        self.rig.buffer.tick()
        return self._asked[-1]


@pytest.mark.parametrize("warmup", [0, 4])
def test_the_buffer_expects_what_the_next_version_still_needs(monkeypatch, warmup):
    expecting = Expecting(monkeypatch, point=(3, warmup, 1))
    assert expecting.expects() == 3 + warmup
    expecting.rig.send(0)
    assert expecting.expects() == 2 + warmup
    expecting.rig.send(1)
    assert expecting.expects() == 1 + warmup


def test_the_buffer_expects_the_next_one_when_a_version_is_due_and_is_not_taken(monkeypatch):
    expecting = Expecting(monkeypatch, point=(2, 0, 1))
    expecting.expects()
    for actor in (0, 1, 0):
        expecting.rig.send(actor)
        expecting.expects()
    assert expecting.expects() == 1


def test_what_is_left_over_counts_for_the_version_after(monkeypatch):
    expecting = Expecting(monkeypatch, point=(2, 0, 1))
    expecting.expects()
    for actor in (0, 1, 0):
        expecting.rig.send(actor)
    batch = expecting.rig.take()
    expecting.rig.finish(batch)
    assert expecting.expects() == 1
    expecting.rig.send(1)
    expecting.rig.finish(expecting.rig.take())
    assert expecting.expects() == 2


def test_what_was_discarded_is_expected_once_more(monkeypatch):
    expecting = Expecting(monkeypatch, point=(3, 0, 1), max_lag=1)
    expecting.rig.version = 5
    expecting.rig.buffer.continue_at(5)
    expecting.expects()
    for actor, oldest in ((0, 1), (1, 1), (0, 5)):
        expecting.rig.send(actor, oldest=oldest)
    assert expecting.expects() == 1, "three are there"
    assert expecting.rig.buffer.take() is None
    assert expecting.expects() == 2, "two of them were too old"
