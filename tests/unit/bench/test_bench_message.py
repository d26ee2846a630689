"""A message that was lost, doubled, overtaken or torn on its way is noticed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.bench.ends import SIZE
from tianji.bench.message import PAYLOAD, Inspector, Payload, aligned_bytes, make_layout
from tianji.errors import ChannelError

NUM_SLOTS, NUM_SENDERS = 4, 2


class Slots:
    """Messages as they would lie after their way, with an inspector."""

    def __init__(self, size=SIZE):
        layout = make_layout(size)
        memory = np.zeros(layout.slot_bytes * NUM_SLOTS, np.uint8)
        self.payloads = layout.arrays(memory, NUM_SLOTS)[PAYLOAD]
        self.inspector = Inspector(self.payloads, NUM_SENDERS)
        self._senders = [Payload(size, sender) for sender in range(NUM_SENDERS)]

    def write(self, slot, number, sender=0):
        payload = self._senders[sender]
        payload.vary(number)
        payload.head[0] = payload.tail[0] = number & payload.last_number
        self.payloads[slot, 0] = payload.bytes

    def look_at(self, *numbers, sender=0):
        """Messages arrive with these numbers."""
        for number in numbers:
            self.write(1, number, sender)
            self.inspector.look(1, sender)


def test_whole_messages_in_order_pass_and_senders_are_counted_apart():
    slots = Slots()
    slots.look_at(0, 1, 2)
    slots.look_at(0, 1, sender=1)
    slots.look_at(3)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((1,), "Message 0 of sender 0 arrived with the stamps 1 and 1"),
        ((0, 2), "Message 1 of sender 0 arrived with the stamps 2 and 2"),
        ((0, 1, 1), "Message 2 of sender 0 arrived with the stamps 1 and 1"),
        ((0, 2, 1), "lost, duplicated, torn or overtaken"),
    ],
    ids=["the first is lost", "lost", "doubled", "overtaken"],
)
def test_messages_out_of_turn_are_noticed(numbers, words):
    with pytest.raises(ChannelError, match=words):
        Slots().look_at(*numbers)


@pytest.mark.parametrize("word", [0, -1], ids=["head", "tail"])
def test_a_torn_message_is_noticed_by_either_end(word):
    slots = Slots()
    slots.write(2, 0)
    slots.payloads[2, 0].view(np.int64)[word] = 9
    with pytest.raises(ChannelError, match=r"stamps (9 and 0|0 and 9)"):
        slots.inspector.look(2, 0)


def test_every_message_of_every_sender_passes_the_comparison():
    slots = Slots()
    for number in range(3):
        for sender in range(NUM_SENDERS):
            slots.write(sender, number, sender)
            slots.inspector.compare(sender, sender)


@given(st.integers(8, SIZE - 9), st.integers(1, 255))
def test_a_single_other_byte_is_noticed_by_the_comparison(at, change):
    slots = Slots()
    slots.write(0, 0)
    slots.payloads[0, 0, at] ^= change
    with pytest.raises(ChannelError, match="bytes of message 0 of sender 0 changed"):
        slots.inspector.compare(0, 0)


@pytest.mark.parametrize("other", [{"number": 1}, {"number": 0, "sender": 1}])
def test_the_inside_of_another_message_is_noticed_by_the_comparison(other):
    slots = Slots()
    slots.write(0, **other)
    slots.payloads[0, 0].view(np.int64)[[0, -1]] = 0
    with pytest.raises(ChannelError, match="changed on the way"):
        slots.inspector.compare(0, 0)


def test_the_comparison_looks_at_the_stamps_too():
    slots = Slots()
    slots.write(0, 1)
    with pytest.raises(ChannelError, match="stamps 1 and 1"):
        slots.inspector.compare(0, 0)


@given(st.integers(1, 70), st.integers(0, NUM_SENDERS - 1))
def test_messages_of_any_size_pass_and_one_that_is_left_out_is_noticed(size, sender):
    slots = Slots(size)
    for number in range(300):
        slots.write(1, number, sender)
        slots.inspector.compare(1, sender)
    slots.write(1, 301, sender)
    with pytest.raises(ChannelError, match="Message 300"):
        slots.inspector.compare(1, sender)


@pytest.mark.parametrize("size", [1, 3, 4, 15, 16, 4097])
def test_a_torn_message_of_any_size_is_noticed(size):
    slots = Slots(size)
    slots.write(0, 0)
    slots.payloads[0, 0, -1] ^= 1
    with pytest.raises(ChannelError, match="Message 0 of sender 0"):
        slots.inspector.look(0, 0)


@given(st.integers(1, 5000))
def test_memory_begins_at_a_cache_line_and_is_as_long_as_asked(nbytes):
    memory = aligned_bytes(nbytes)
    assert memory.nbytes == nbytes
    assert memory.ctypes.data % 64 == 0


def test_a_payload_begins_at_a_cache_line():
    assert Payload(SIZE, 0).bytes.ctypes.data % 64 == 0
