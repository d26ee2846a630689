"""What two ends remember of each other while connections come and go. Nothing here knows sockets.

Every message has a number. The receiver counts what has arrived, and the sender keeps each message
until the peer's count covers it. After a broken connection both ends tell their counts, and the
sender goes on behind the peer's: nothing is lost or doubled. What is kept is bounded (a window):
without room, nothing more is sent.

    session.send(message)        while session.has_room(nbytes)
    session.next()               the message to put on the wire, None if there is none
    session.acknowledge(ack)     the peer has received so many
    session.receive(number)      True if the message is new

An end has an identity for as long as it remembers. A peer with another one has been restarted:
everything of the old one is void, and both begin at number 0.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from tianji.gateways.refusals import Refusal, Refused

NOBODY = 0


class Hello(NamedTuple):
    """What an end says of itself when a connection begins."""

    own: int
    """Its identity."""
    knows: int
    """The identity of the peer that it remembers; NOBODY if none."""
    received: int
    """How many messages of that peer have arrived."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `settled` is called once: with True when it has arrived, with False when it is
    void. Until then note and body must not change."""

    channel: int
    note: bytes
    body: memoryview | bytes = b""
    settled: Callable[[bool], None] | None = None

    @property
    def nbytes(self) -> int:
        return len(self.note) + len(self.body)


class Session:
    """One end's memory of the other."""

    def __init__(
        self, max_messages: int, max_bytes: int, on_new_peer: Callable[[], None] | None = None
    ) -> None:
        """on_new_peer: called when everything of the old peer was made void."""
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._on_new_peer = on_new_peer
        self.own = _new_identity()
        self.peer = NOBODY
        self._kept: deque[Message] = deque()
        """Messages that are not acknowledged yet, the first with number `acked`."""
        self._kept_bytes = 0
        self.acked = 0
        self.sent = 0
        """Number of the next message to put on the wire."""
        self.received = 0
        self._told = 0
        """The count of received messages that the peer was told last."""

    # ------------------------------------------------------------------ sending

    def has_room(self, nbytes: int) -> bool:
        """Return whether a message of this size may be sent now. One always may if none is kept."""
        if not self._kept:
            return True
        return len(self._kept) < self._max_messages and self._kept_bytes + nbytes <= self._max_bytes

    def send(self, message: Message) -> None:
        self._kept.append(message)
        self._kept_bytes += message.nbytes

    def next(self) -> tuple[int, Message] | None:
        """Return the next message to put on the wire, with its number."""
        index = self.sent - self.acked
        if index >= len(self._kept):
            return None
        self.sent += 1
        return self.sent - 1, self._kept[index]

    def acknowledge(self, ack: int) -> None:
        """Forget the messages that have arrived; `ack` is how many have in all."""
        if ack > self.sent:
            raise Refused(Refusal.GARBAGE)
        while self.acked < ack:
            message = self._kept.popleft()
            self._kept_bytes -= message.nbytes
            self.acked += 1
            if message.settled is not None:
                message.settled(True)

    # ---------------------------------------------------------------- receiving

    def is_new(self, number: int) -> bool:
        """Return False for a message that has arrived before. One too early is refused."""
        if number > self.received:
            raise Refused(Refusal.GARBAGE)
        return number == self.received

    def receive(self) -> None:
        """Count the message that was expected next."""
        self.received += 1

    def owes_ack(self) -> bool:
        return self._told != self.received

    def tell(self) -> int:
        """Return the acknowledgement to put into a frame."""
        self._told = self.received
        return self.received

    # ----------------------------------------------------------- new connections

    def hello(self) -> Hello:
        self._told = self.received
        return Hello(self.own, self.peer, self.received)

    def welcome(self, hello: Hello) -> Hello:
        """The listening end: go on where both are, or begin anew; return the answer."""
        is_forgotten = hello.knows != self.own and (self.acked > 0 or self.received > 0)
        if hello.own != self.peer or is_forgotten:
            self._begin(_new_identity(), hello.own)
        self._go_on(hello.received if hello.knows == self.own else 0)
        return self.hello()

    def welcomed(self, hello: Hello) -> None:
        """The connecting end, on the answer."""
        if hello.knows != self.own:
            raise Refused(Refusal.GARBAGE)
        if hello.own != self.peer:
            self._begin(self.own, hello.own)
        self._go_on(hello.received)

    def forget(self) -> None:
        """Give the peer up: if it comes back, it begins anew."""
        self._begin(_new_identity(), NOBODY)

    def _go_on(self, peer_received: int) -> None:
        """Rewind to the first message that the peer has not received."""
        if not self.acked <= peer_received <= self.acked + len(self._kept):
            self.forget()
            raise Refused(Refusal.GARBAGE)
        self.sent = max(self.sent, peer_received)  # it may have arrived without our noticing
        self.acknowledge(peer_received)
        self.sent = peer_received

    def _begin(self, own: int, peer: int) -> None:
        void = list(self._kept)
        self._kept.clear()
        self._kept_bytes = self.acked = self.sent = self.received = self._told = 0
        self.own, self.peer = own, peer
        for message in void:
            if message.settled is not None:
                message.settled(False)
        if self._on_new_peer is not None:
            self._on_new_peer()

    def kept(self) -> tuple[Message, ...]:
        """Return the messages not acknowledged yet, for reports and tests."""
        return tuple(self._kept)

    @property
    def kept_bytes(self) -> int:
        return self._kept_bytes


def _new_identity() -> int:
    return secrets.randbits(63) | 1
