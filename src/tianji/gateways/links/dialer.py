"""Connects a link to its peer, and connects it again whenever the connection has ended."""

from __future__ import annotations

import socket
from selectors import EVENT_WRITE

from tianji.gateways.links.connection import Connection
from tianji.gateways.links.greeting import ConnectorGreeting
from tianji.gateways.links.keys import LinkKeys
from tianji.gateways.links.link import Link
from tianji.gateways.links.meeting import TIME_LIMIT_NS, Meeting
from tianji.gateways.links.state import NEVER_NS
from tianji.gateways.refusals import Refusal, Refused
from tianji.gateways.watch import Watch

_MIN_DELAY_NS, _MAX_DELAY_NS = 20_000_000, 1_000_000_000


class Dialer:
    """Tries at once, then after pauses that grow up to a second."""

    def __init__(
        self, name: str, keys: LinkKeys, watch: Watch, link: Link, address: tuple[str, int]
    ) -> None:
        """name: by which the peer knows this host. address: looked up now, once, because looking
        up may take long."""
        self._name = name
        self._secret = keys.secret
        self._context = keys.connecting() if keys.pem else None
        self._watch = watch
        self._link = link
        found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0]
        self._family, self._address = found[0], found[4]
        self._socket: socket.socket | None = None
        self._meeting: Meeting | None = None
        self._began_ns = self._next_ns = 0
        self._delay_ns = _MIN_DELAY_NS

    def tick(self, now_ns: int) -> None:
        if self._is_under_way():
            if now_ns >= self._began_ns + TIME_LIMIT_NS:
                self._fail()
        elif self._link.connection is None and now_ns >= self._next_ns:
            was_stable = now_ns - self._began_ns > 2 * _MAX_DELAY_NS
            self._delay_ns = _MIN_DELAY_NS if was_stable else min(2 * self._delay_ns, _MAX_DELAY_NS)
            self._began_ns, self._next_ns = now_ns, now_ns + self._delay_ns
            self._dial()

    def _is_under_way(self) -> bool:
        return self._socket is not None or self._meeting is not None

    def due_ns(self) -> int:
        if self._is_under_way():
            return self._began_ns + TIME_LIMIT_NS
        return self._next_ns if self._link.connection is None else NEVER_NS

    def _dial(self) -> None:
        try:
            self._socket = socket.socket(self._family, socket.SOCK_STREAM)
            self._socket.setblocking(False)
            self._socket.connect(self._address)
        except BlockingIOError:
            assert self._socket is not None
            self._watch.set(self._socket, EVENT_WRITE, self._connected)
        except OSError:
            self._fail()
        else:
            self._connected()

    def _connected(self, _events: int = 0) -> None:
        sock, self._socket = self._socket, None
        assert sock is not None
        self._watch.remove(sock)
        if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            sock.close()
            return
        if self._context is not None:
            sock = self._context.wrap_socket(sock, do_handshake_on_connect=False)
        greeting = ConnectorGreeting(
            self._secret, self._name, self._link.wiring, self._link.session.hello()
        )

        def over(meeting: Meeting, refusal: Refusal | None) -> None:
            self._meeting = None
            if meeting.is_met:
                assert greeting.welcomed is not None
                self._join(meeting.connection, greeting)
            elif refusal is not None:
                self._link.refusals.note(refusal)

        deadline_ns = self._began_ns + TIME_LIMIT_NS
        self._meeting = Meeting(Connection(sock), greeting, self._watch, deadline_ns, over)
        self._meeting.proceed()

    def _join(self, connection: Connection, greeting: ConnectorGreeting) -> None:
        assert greeting.welcomed is not None
        try:
            self._link.session.welcomed(greeting.welcomed)
        except Refused as refused:
            connection.close()
            self._link.refusals.note(refused.refusal)
            return
        self._link.attach(connection)

    def _fail(self) -> None:
        if self._meeting is not None:
            self._meeting.fail(None)
        if self._socket is not None:
            self._watch.remove(self._socket)
            self._socket.close()
            self._socket = None

    def close(self) -> None:
        self._fail()
