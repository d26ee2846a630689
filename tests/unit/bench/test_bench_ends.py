"""The experiment's two ends over both streams: all that was asked for, and not one more."""

import pytest

from tests.unit.bench.ends import ENDS, SIZE, keep_few, run_through
from tianji.bench.message import PAYLOAD
from tianji.bench.point import Point
from tianji.bench.receiving import VirtualBuffer
from tianji.bench.sender import VirtualActor
from tianji.errors import ChannelError

pytestmark = pytest.mark.parametrize("ends", ENDS)


@pytest.fixture(autouse=True)
def few_places(monkeypatch):
    keep_few(monkeypatch)


@pytest.mark.parametrize("num_actors", [1, 3])
@pytest.mark.parametrize("num_messages", [3, 10, 101])
def test_exactly_the_messages_that_were_asked_for_are_granted_sent_and_received(
    ends, num_actors, num_messages
):
    point = Point(SIZE, num_actors, 0.0, num_messages)
    watched, _, actors = run_through(point, ends)
    assert sum(watched.granted) == len(watched.seen) == point.num_warmup + num_messages
    assert [actor.num_sent for actor in actors] == watched.granted
    assert min(watched.granted) >= 1, "a sender had nothing to do"


def test_the_newest_messages_are_kept_where_they_lie_and_the_oldest_give_way(ends):
    point = Point(SIZE, 3, 0.0, 100, is_checking=True)
    watched, _, _ = run_through(point, ends)
    assert list(watched.kept.values()) == watched.seen[-point.num_kept :]
    for slot, content in watched.kept.items():
        assert watched.bytes_in(slot) == content


def test_a_copying_receiver_keeps_copies_and_no_slot(ends):
    point = Point(SIZE, 2, 0.0, 50, is_copying=True, is_checking=True)
    watched, buffer, _ = run_through(point, ends)
    assert watched.kept == {}, "a slot was not released at once"
    newest = {copy.tobytes() for copy in buffer._copies}
    assert newest == set(watched.seen[-point.num_kept :])


def test_messages_differ_in_a_checking_run_and_only_in_their_stamps_otherwise(ends):
    watched, _, _ = run_through(Point(SIZE, 1, 0.0, 5), ends)
    assert len({message[8:-8] for message in watched.seen}) == 1, "making messages was measured"
    watched, _, _ = run_through(Point(SIZE, 1, 0.0, 5, is_checking=True), ends)
    assert len({message[8:-8] for message in watched.seen}) == len(watched.seen)


def receive_with_one_other_byte(point, ends):
    receiver, (sender,) = ENDS[ends](point)
    buffer = VirtualBuffer(point, receiver)
    buffer.collect(1)
    VirtualActor(point, 0, sender).tick()
    receiver.arrays[PAYLOAD][:, 0, SIZE // 2] += 1
    return buffer.tick()


def test_only_a_checking_run_looks_at_every_byte(ends):
    with pytest.raises(ChannelError, match="changed on the way"):
        receive_with_one_other_byte(Point(SIZE, is_checking=True), ends)
    assert receive_with_one_other_byte(Point(SIZE), ends), "speed is measured with the stamps alone"


def test_no_more_is_expected_than_is_awaited(ends):
    point = Point(SIZE, 3, 0.0, 100)
    watched, _, _ = run_through(point, ends)
    total = point.num_warmup + point.num_messages
    timed = [(count, seen) for count, seen in watched.expected if seen > point.num_warmup]
    assert all(count <= total - seen for count, seen in timed)
    half = 3 * (point.window // 2)
    assert max(count for count, _ in timed) == half, "half of every sender's window"
    assert timed[-1] == (0, total)


def test_stamps_say_who_sent_what_when(ends):
    receiver, senders = ENDS[ends](Point(SIZE, 2))
    actor = VirtualActor(Point(SIZE, 2), 1, senders[1])
    receiver.grant(1, 0, 2)
    assert actor.tick()
    first, second = [receiver.stamp(receiver.take()) for _ in range(2)]
    assert (first.actor, first.round, second.round) == (1, 0, 1)
    assert first.started_ns <= first.finished_ns == second.started_ns <= second.finished_ns
    assert not actor.tick(), "nothing was granted"


@pytest.mark.parametrize("is_checking", [False, True])
def test_sampling_takes_its_time_and_is_measured(ends, is_checking):
    point = Point(SIZE, 1, 0.001, 3, is_checking=is_checking)
    _, _, (actor,) = run_through(point, ends)
    assert actor.sampled_ns >= 3_000_000


def test_an_actor_goes_on_after_its_lane_was_reset(ends):
    point = Point(SIZE)
    receiver, (sender,) = ENDS[ends](point)
    actor = VirtualActor(point, 0, sender)
    receiver.grant(0, 0)
    actor.tick()
    receiver.reset_lane(0)
    actor.tick()
    assert receiver.grant(0, 0)
    assert actor.tick()
