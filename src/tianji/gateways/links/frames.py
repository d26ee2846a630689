"""Messages as bytes: a header, a short note, and a body.

    kind | note bytes | channel | body bytes | number | ack |  note ...  |  body ...

The note says what the body is (a lane and a stamp, a version), so that the body of an item is
received straight into its slot. Every frame acknowledges what its sender has received.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import Enum, IntEnum
from typing import NamedTuple, Protocol

from tianji.gateways.refusals import Refusal, Refused

_HEADER = struct.Struct("!BBHIQQ")
HEADER_BYTES = _HEADER.size
MAX_NOTE_BYTES = 255
BUFFER_BYTES = 64 << 10
TURN_BYTES = 4 << 20  # read at most this much before something else gets its turn


class Kind(IntEnum):
    """The kinds of frame."""

    DATA = 1
    """A numbered message: it arrives once, in order."""
    ACK = 3
    """Nothing but the acknowledgement in its header."""
    PING = 4
    """Its note is the sender's time."""
    PONG = 5
    """Its note is the time of the ping, of its arrival, and of this answer."""


class Header(NamedTuple):
    """What every frame begins with."""

    kind: int
    note_bytes: int
    channel: int
    body_bytes: int
    number: int
    ack: int

    def pack(self) -> bytes:
        return _HEADER.pack(*self)


class Inbox(Protocol):
    """Takes frames as they arrive. Either call may raise Refused, which ends the connection."""

    def place(self, header: Header, note: bytes) -> memoryview | None:
        """Return where the body goes, or None to let it be read and dropped."""

    def arrived(self, header: Header, note: bytes, body: memoryview | None) -> None: ...


class Progress(Enum):
    """What stopped a reader."""

    BLOCKED = 1
    MORE = 2
    """It left something unread, because other work had waited long enough."""
    CLOSED = 3


class FrameReader:
    """Turns bytes into frames. Headers and small bodies come through a buffer; the rest of a large
    body is received where it belongs."""

    def __init__(self, inbox: Inbox, receive_into: Callable[[memoryview], int]) -> None:
        """receive_into: returns how many bytes it got, 0 at the end, -1 if there are none yet."""
        self._inbox = inbox
        self._receive_into = receive_into
        self._buffer = memoryview(bytearray(BUFFER_BYTES))
        self._begin = self._end = 0
        self._header: Header | None = None
        self._note = b""
        self._body: memoryview | None = None
        self._left = 0
        self._ahead = BUFFER_BYTES

    def read(self) -> Progress:
        """Deliver frames until none is left, or until it is somebody else's turn."""
        total = 0
        while total < TURN_BYTES:
            while self._step():
                pass
            count = self._receive()
            if count <= 0:
                return Progress.BLOCKED if count < 0 else Progress.CLOSED
            total += count
        while self._step():
            pass
        return Progress.MORE

    def _step(self) -> bool:
        """Use what is in the buffer; return whether that brought anything forward."""
        if self._header is None:
            return self._begin_frame()
        count = min(self._left, self._end - self._begin)
        if self._body is not None and count:
            at = len(self._body) - self._left
            self._body[at : at + count] = self._buffer[self._begin : self._begin + count]
        self._begin += count
        self._left -= count
        if self._left:
            return False
        header, body = self._header, self._body
        self._header = self._body = None
        self._inbox.arrived(header, self._note, body)
        return True

    def _begin_frame(self) -> bool:
        have = self._end - self._begin
        if have < HEADER_BYTES:
            return False
        header = Header._make(_HEADER.unpack_from(self._buffer, self._begin))
        if header.kind not in Kind._value2member_map_:
            raise Refused(Refusal.GARBAGE)
        if have < HEADER_BYTES + header.note_bytes:
            return False
        at = self._begin + HEADER_BYTES
        self._note = bytes(self._buffer[at : at + header.note_bytes])
        self._body = self._inbox.place(header, self._note)
        self._header, self._left = header, header.body_bytes
        # Behind a large body there is probably another one: read its header, and copy none of it.
        self._ahead = HEADER_BYTES + MAX_NOTE_BYTES if self._left > BUFFER_BYTES else BUFFER_BYTES
        self._begin = at + header.note_bytes
        return True

    def _receive(self) -> int:
        """Receive into the body if much of it is missing, else into the buffer."""
        if self._body is not None and self._left > BUFFER_BYTES // 2:
            count = self._receive_into(self._body[len(self._body) - self._left :])
            self._left -= max(0, count)
            return count
        have = self._end - self._begin
        self._buffer[:have] = self._buffer[self._begin : self._end]
        self._begin, self._end = 0, have
        missing = 0 if self._header is None else self._left
        count = self._receive_into(self._buffer[have : have + missing + self._ahead])
        self._end += max(0, count)
        return count
