"""Frames arrive whole, however the bytes are divided."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tianji.gateways.links.frames import BUFFER_BYTES, FrameReader, Header, Kind, Progress
from tianji.gateways.refusals import Refused


class Collected:
    """Keeps the frames; bodies of channel 1 are dropped."""

    def __init__(self):
        self.frames = []

    def place(self, header, note):
        return None if header.channel == 1 else memoryview(bytearray(header.body_bytes))

    def arrived(self, header, note, body):
        self.frames.append((header, note, None if body is None else bytes(body)))


def source(data, sizes):
    """Gives the data in pieces of these sizes, then says that there is no more for now."""
    data, sizes = memoryview(bytes(data)), list(sizes)

    def receive_into(view):
        nonlocal data
        if not data:
            return -1
        count = min(len(view), len(data), sizes.pop() if sizes else len(data))
        view[:count] = data[:count]
        data = data[count:]
        return count

    return receive_into


def frame(number, note, body, channel=0):
    header = Header(Kind.DATA, len(note), channel, len(body), number, 7)
    return header, header.pack() + note + body


BODIES = st.one_of(
    st.binary(max_size=50), st.integers(0, 3 * BUFFER_BYTES).map(lambda n: bytes([n % 256]) * n)
)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.binary(max_size=255), BODIES, st.integers(0, 1)), max_size=6),
    st.lists(st.integers(1, 2 * BUFFER_BYTES), max_size=30),
)
def test_frames_are_read_as_they_were_written(contents, sizes):
    expected, data = [], b""
    for number, (note, body, channel) in enumerate(contents):
        header, packed = frame(number, note, body, channel)
        data += packed
        expected.append((header, note, None if channel == 1 else body))
    inbox = Collected()
    assert FrameReader(inbox, source(data, sizes)).read() is Progress.BLOCKED
    assert inbox.frames == expected


def test_one_byte_at_a_time():
    _, data = frame(3, b"note", b"body" * 10)
    inbox = Collected()
    FrameReader(inbox, source(data, [1] * len(data))).read()
    ((_, note, body),) = inbox.frames
    assert (note, body) == (b"note", b"body" * 10)


def test_the_rest_of_a_large_body_is_received_where_it_belongs():
    views = []
    _, data = frame(0, b"", bytes(4 * BUFFER_BYTES))
    read = source(data, [])

    def receive_into(view):
        views.append(len(view))
        return read(view)

    FrameReader(Collected(), receive_into).read()
    assert views[1] > 2 * BUFFER_BYTES


def test_a_reader_stops_for_others_when_there_is_always_more():
    _, data = frame(0, b"", bytes(1 << 20))
    inbox = Collected()
    reader = FrameReader(inbox, source(data * 9, []))
    assert reader.read() is Progress.MORE
    assert 4 <= len(inbox.frames) <= 5


def test_an_unknown_kind_is_refused():
    with pytest.raises(Refused):
        FrameReader(Collected(), source(bytes(100), [])).read()
