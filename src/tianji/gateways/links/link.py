"""The link to one other host: a session that outlives its connections, and the ports on it.

Takes: connections that have been greeted. Gives: messages to its ports, a report of its state.
Waits for: nothing; the gateway calls it when its socket is ready or its time has come.
A link that is silent is broken, one that stays broken is gone: the ports are told, and if the peer
comes back later, both begin anew.
"""

from __future__ import annotations

import struct
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from selectors import EVENT_READ

from tianji.errors import ChannelError
from tianji.gateways.clock import ClockOffset
from tianji.gateways.interface import Port, Settled
from tianji.gateways.links.connection import Connection
from tianji.gateways.links.frames import MAX_NOTE_BYTES, FrameReader, Header, Kind, Progress
from tianji.gateways.links.session import NOBODY, Message, Session
from tianji.gateways.links.state import NEVER_NS, LinkLimits, LinkReport, LinkState
from tianji.gateways.refusals import Refusal, Refusals, Refused

_ONE_TIME, _THREE_TIMES = struct.Struct("!q"), struct.Struct("!3q")
_FILL_BYTES = 1 << 20  # keep so much ready for the socket
_EARLY_PINGS, _EARLY_PERIOD_NS = 8, 50_000_000  # until the clocks' offset is known well


class _Channel:
    """A port's way out."""

    def __init__(self, link: Link, number: int, max_body_bytes: int) -> None:
        self._link, self._number, self._max_body_bytes = link, number, max_body_bytes
        self.clock = link.clock

    def has_room(self, nbytes: int) -> bool:
        return self._link.session.has_room(nbytes)

    def send(
        self, note: bytes, body: memoryview | bytes = b"", settled: Settled | None = None
    ) -> None:
        if len(body) > self._max_body_bytes or len(note) > MAX_NOTE_BYTES:
            raise ChannelError(
                f"A message of {len(body)} bytes does not fit its channel to {self._link.peer}, "
                f"which was made for {self._max_body_bytes}. Start both hosts from one plan."
            )
        self._link.session.send(Message(self._number, note, body, settled))


class Link:
    """One end of a link; it is the inbox of the frames that arrive."""

    def __init__(
        self,
        peer: str,
        ports: Sequence[Port],
        refusals: Refusals,
        limits: LinkLimits | None = None,
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.peer = peer
        self.limits = limits or LinkLimits()
        self.refusals = refusals
        self.session = Session(self.limits.max_messages, self.limits.max_bytes, self._begin_anew)
        self.clock = ClockOffset()
        self.connection: Connection | None = None
        self.on_closing: Callable[[Connection], None] = lambda _: None
        """Called before a connection is closed."""
        self.has_unread = False
        """Bytes may be waiting that the socket does not show."""
        self._ports = ports
        self._now_ns = now_ns
        self._reader: FrameReader | None = None
        self.state, self._state_since_ns = LinkState.EXPECTED, now_ns()
        self._heard_ns = self._ping_ns = 0
        self._num_connections = self._pings_left = 0
        self._bytes_sent = self._bytes_received = 0
        for number, port in enumerate(ports):
            port.open(_Channel(self, number, port.max_body_bytes))

    @property
    def wiring(self) -> int:
        """Equal at two ends whose channels are the same."""
        channels = [f"{port.wiring} {port.max_body_bytes}" for port in self._ports]
        return zlib.crc32("\n".join([sys.byteorder, *channels]).encode())

    # --------------------------------------------------------------- connections

    def attach(self, connection: Connection) -> None:
        """Go on over a connection that was greeted; the session knows the peer's count."""
        self.connection = connection
        self._reader = FrameReader(self, connection.receive_into)
        self.has_unread = True  # TLS may have read on behind the greeting
        self._num_connections += 1
        self._heard_ns = self._now_ns()
        self._ping_ns, self._pings_left = 0, _EARLY_PINGS
        self._become(LinkState.UP)

    def drop(self, refusal: Refusal | None = None) -> None:
        """End the connection; what was not acknowledged is sent again over the next."""
        if refusal is not None:
            self.refusals.note(refusal)
        if self.connection is None:
            return
        self._bytes_sent += self.connection.bytes_sent
        self._bytes_received += self.connection.bytes_received
        self.on_closing(self.connection)
        self.connection.close()
        self.connection = self._reader = None
        for port in self._ports:
            port.interrupted()
        self._become(LinkState.BROKEN)

    def give_up(self) -> None:
        """End the connection for good; the ports are told that the peer is gone."""
        self.drop()
        self._become(LinkState.GONE)
        self.session.forget()

    def _become(self, state: LinkState) -> None:
        self.state, self._state_since_ns = state, self._now_ns()

    def _begin_anew(self) -> None:
        self.clock.forget()
        for port in self._ports:
            port.reset()

    # --------------------------------------------------------------------- turns

    def pump(self) -> bool:
        """Let the ports forward; return whether anything was. They wait for the offset of the
        clocks: each end pings first, so the other end knows it too when the first message comes."""
        if self.session.peer == NOBODY or self.connection is None or not self.clock.is_known:
            return False
        moved = [port.pump() for port in self._ports]
        return any(moved)

    def write(self) -> bool:
        """Write what there is; return False if the socket takes no more for now."""
        connection = self.connection
        if connection is None:
            return True
        try:
            while True:
                self._fill(connection)
                if not connection.waiting_bytes:
                    return True
                if not connection.write():
                    return False
        except OSError:
            self.drop()
            return True

    def _fill(self, connection: Connection) -> None:
        session = self.session
        while connection.waiting_bytes < _FILL_BYTES and (entry := session.next()):
            number, message = entry
            self._queue(Kind.DATA, message.channel, number, message.note, message.body)
        if session.owes_ack():
            self._queue(Kind.ACK, 0, 0, b"")

    def _queue(
        self, kind: Kind, channel: int, number: int, note: bytes, body: memoryview | bytes = b""
    ) -> None:
        connection = self.connection
        if connection is not None:
            ack = self.session.tell()
            header = Header(kind, len(note), channel, len(body), number, ack)
            connection.queue(header.pack() + note)
            if body:
                connection.queue(body)

    def ready(self, events: int) -> None:
        """The socket is ready; writing comes with the next turn."""
        if events & EVENT_READ:
            self.read()

    def read(self) -> None:
        """Read what there is, up to a bound."""
        self.has_unread = False
        if self._reader is None:
            return
        try:
            progress = self._reader.read()
        except Refused as refused:
            self.drop(refused.refusal)
        except OSError:
            self.drop()
        else:
            self._heard_ns = self._now_ns()
            if progress is Progress.CLOSED:
                self.drop()
            self.has_unread = progress is Progress.MORE

    def tick(self, now_ns: int) -> None:
        """Send a ping when it is time, and notice silence."""
        if self.connection is not None:
            if now_ns - self._heard_ns > self.limits.silent_after_ns:
                self.drop()
            elif now_ns >= self._ping_ns:
                self._queue(Kind.PING, 0, 0, _ONE_TIME.pack(self._now_ns()))
                is_early, self._pings_left = self._pings_left > 0, self._pings_left - 1
                self._ping_ns = now_ns + (
                    _EARLY_PERIOD_NS if is_early else self.limits.ping_period_ns
                )
        elif self.state is LinkState.BROKEN and now_ns >= self.due_ns():
            self.give_up()

    def due_ns(self) -> int:
        """Return when to call `tick` next."""
        if self.connection is not None:
            return min(self._ping_ns, self._heard_ns + self.limits.silent_after_ns)
        if self.state is LinkState.BROKEN:
            return self._state_since_ns + self.limits.gone_after_ns
        return NEVER_NS

    # --------------------------------------------------------------------- inbox

    def place(self, header: Header, note: bytes) -> memoryview | None:
        if header.kind != Kind.DATA:
            if header.body_bytes:
                raise Refused(Refusal.GARBAGE)
            return None
        if header.channel >= len(self._ports):
            raise Refused(Refusal.GARBAGE)
        port = self._ports[header.channel]
        if header.body_bytes > port.max_body_bytes:
            raise Refused(Refusal.OVERSIZED)
        if not self.session.is_new(header.number):
            return None
        return port.place(note, header.body_bytes)

    def arrived(self, header: Header, note: bytes, body: memoryview | None) -> None:
        self.session.acknowledge(header.ack)
        if header.kind == Kind.DATA:
            if not self.session.is_new(header.number):
                self.refusals.note(Refusal.REPLAYED)
                return
            self._ports[header.channel].receive(note, body)
            self.session.receive()
        elif header.kind == Kind.PING:
            self._answer(note)
        elif header.kind == Kind.PONG:
            self._note_pong(note)

    def _answer(self, note: bytes) -> None:
        if len(note) != _ONE_TIME.size:
            raise Refused(Refusal.GARBAGE)
        (t0,) = _ONE_TIME.unpack(note)
        t1 = self._now_ns()
        self._queue(Kind.PONG, 0, 0, _THREE_TIMES.pack(t0, t1, self._now_ns()))

    def _note_pong(self, note: bytes) -> None:
        if len(note) != _THREE_TIMES.size:
            raise Refused(Refusal.GARBAGE)
        t0, t1, t2 = _THREE_TIMES.unpack(note)
        self.clock.add(t0, t1, t2, self._now_ns())

    def report(self) -> LinkReport:
        connection = self.connection
        return LinkReport(
            self.peer,
            self.state,
            self._state_since_ns,
            self._num_connections,
            self._bytes_sent + (connection.bytes_sent if connection else 0),
            self._bytes_received + (connection.bytes_received if connection else 0),
            self.clock.error_ns,
        )
