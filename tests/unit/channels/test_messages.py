"""The stream of messages between two workers, both ends in this process."""

import os

import numpy as np
import pytest

from tianji.channels.messages import MessageReceiver, MessageSender, copied, empty
from tianji.errors import ChannelError


class Ends:
    def __init__(self, capacity=2):
        self.fds = [os.memfd_create("messages") for _ in range(capacity)]
        self.rings = 0
        self.open()

    def open(self):
        self.sender, self.receiver = MessageSender(self.fds, self.ring), MessageReceiver(self.fds)

    def ring(self):
        self.rings += 1


MESSAGE = {
    "version": 3,
    "big": 1 << 120,
    "nothing": None,
    "text": "actor-0 is back",
    "nan": [float("inf"), 0.1],
    "numpy": [np.int64(7), np.float32(0.5), np.bool_(True)],
    "arrays": {
        "obs": np.arange(24, dtype=np.uint8).reshape(2, 3, 4),
        "strided": np.arange(12.0).reshape(3, 4)[:, ::2],
        "none": np.zeros((0, 5), np.float32),
        "one": np.array(2.5),
        "done": np.array([True, False]),
    },
}


def test_a_message_arrives_as_it_was_sent():
    ends = Ends()
    assert ends.receiver.take() is None
    ends.sender.send(MESSAGE)
    assert ends.rings == 1
    came = ends.receiver.take()
    arrays, sent = came.pop("arrays"), dict(MESSAGE)
    for name, array in sent.pop("arrays").items():
        assert arrays[name].dtype == array.dtype, name
        assert arrays[name].shape == array.shape, name
        assert arrays[name].tolist() == array.tolist(), name
    assert came == {**sent, "numpy": [7, 0.5, True]}
    assert ends.receiver.take() is None, "it comes once"


def test_arrays_lie_in_the_slot_until_it_is_released():
    ends = Ends(capacity=1)
    ends.sender.send({"obs": np.ones(1000)})
    came = ends.receiver.take()
    kept = copied(came)
    assert not ends.sender.has_room()
    with pytest.raises(ChannelError, match="has not released"):
        ends.sender.send({"obs": np.zeros(1000)})
    ends.receiver.release()
    assert ends.sender.has_room()
    ends.sender.send({"obs": np.zeros(1000)})
    assert came["obs"].sum() == 0, "read in place"
    assert kept["obs"].sum() == 1000, "copied"


def test_messages_keep_their_order_and_slots_grow_with_them():
    ends = Ends(capacity=3)
    for number in range(0, 30, 3):
        for count in range(number, number + 3):
            ends.sender.send({"number": count, "data": np.full(10 ** (count % 6), count)})
        assert not ends.sender.has_room()
        for count in range(number, number + 3):
            came = ends.receiver.take()
            assert came["number"] == count
            assert (came["data"] == count).all()
            assert len(came["data"]) == 10 ** (count % 6)
            ends.receiver.release()


def test_several_messages_may_be_held_at_once():
    ends = Ends(capacity=2)
    ends.sender.send({"data": np.array([1])})
    ends.sender.send({"data": np.array([2])})
    one, two = ends.receiver.take(), ends.receiver.take()
    assert ends.receiver.take() is None, "all slots are held"
    assert (one["data"][0], two["data"][0]) == (1, 2)
    ends.receiver.release()
    ends.sender.send({"data": np.array([3])})
    assert ends.receiver.take()["data"][0] == 3
    assert two["data"][0] == 2


def test_ends_that_start_again_find_empty_slots():
    ends = Ends(capacity=2)
    ends.sender.send({"left": "over"})
    empty(ends.fds)
    ends.open()
    assert ends.receiver.take() is None
    ends.sender.send({"first": 1})
    assert ends.receiver.take() == {"first": 1}


def test_an_object_is_refused_in_words():
    with pytest.raises(TypeError, match="cannot be sent"):
        Ends().sender.send({"thing": object()})
