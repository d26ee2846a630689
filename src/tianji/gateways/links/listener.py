"""Accepts connections, refuses strangers, and gives each peer's connection to its link."""

from __future__ import annotations

import socket
from selectors import EVENT_READ

from tianji.gateways.links.connection import Connection
from tianji.gateways.links.greeting import ListenerGreeting, Visitor
from tianji.gateways.links.keys import LinkKeys
from tianji.gateways.links.link import Link
from tianji.gateways.links.meeting import TIME_LIMIT_NS, Meeting
from tianji.gateways.links.session import Hello
from tianji.gateways.links.state import NEVER_NS
from tianji.gateways.refusals import Refusal, Refusals
from tianji.gateways.watch import Watch

LOOPBACK = "127.0.0.1"
MAX_MEETINGS = 64


class Listener:
    """Listens on loopback unless an address was asked for."""

    def __init__(
        self,
        keys: LinkKeys,
        watch: Watch,
        refusals: Refusals,
        address: tuple[str, int] = (LOOPBACK, 0),
    ) -> None:
        self._secret = keys.secret
        self._context = keys.listening() if keys.pem else None
        self._watch = watch
        self._refusals = refusals
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._socket = socket.create_server(address, family=family, backlog=MAX_MEETINGS)
        self._socket.setblocking(False)
        self.address: tuple[str, int] = self._socket.getsockname()[:2]
        self._links: dict[str, Link] = {}
        self._meetings: dict[Meeting, str] = {}
        """Greetings under way, with the name of the peer once it has proved itself."""
        self._now_ns = 0
        watch.set(self._socket, EVENT_READ, self._accept)

    def expect(self, link: Link) -> None:
        """Let the peer of a link connect."""
        self._links[link.peer] = link

    def expect_no_more(self, link: Link) -> None:
        """Refuse the peer of a link, also where its greeting is under way."""
        del self._links[link.peer]
        for meeting in [met for met, name in self._meetings.items() if name == link.peer]:
            meeting.fail(None)

    def _accept(self, _events: int) -> None:
        try:
            accepted, _ = self._socket.accept()
        except OSError:  # the visitor has left again
            return
        if len(self._meetings) >= MAX_MEETINGS:
            accepted.close()
            self._refusals.note(Refusal.CROWD)
            return
        if self._context is not None:
            accepted = self._context.wrap_socket(
                accepted, server_side=True, do_handshake_on_connect=False
            )

        def meet(visitor: Visitor) -> Hello:
            """End the peer's older connection, and find out what both remember."""
            self._meetings[meeting] = visitor.name
            link = self._links[visitor.name]
            link.drop()
            return link.session.welcome(visitor.hello)

        greeting = ListenerGreeting(self._secret, self._wiring_of, meet)
        deadline_ns = self._now_ns + TIME_LIMIT_NS
        meeting = Meeting(Connection(accepted), greeting, self._watch, deadline_ns, self._over)
        self._meetings[meeting] = ""
        meeting.proceed()

    def _wiring_of(self, name: str) -> int | None:
        link = self._links.get(name)
        return None if link is None else link.wiring

    def _over(self, meeting: Meeting, refusal: Refusal | None) -> None:
        name = self._meetings.pop(meeting)
        if meeting.is_met:
            self._links[name].attach(meeting.connection)
        elif refusal is not None or not meeting.is_mute:  # else it looked whether somebody listens
            self._refusals.note(refusal or Refusal.SILENT)

    def tick(self, now_ns: int) -> None:
        """Send visitors away that take too long."""
        self._now_ns = now_ns
        for meeting in list(self._meetings):
            if now_ns >= meeting.deadline_ns:
                meeting.fail(Refusal.SILENT)

    def due_ns(self) -> int:
        return min((meeting.deadline_ns for meeting in self._meetings), default=NEVER_NS)

    def close(self) -> None:
        for meeting in list(self._meetings):
            meeting.fail(None)
        self._watch.remove(self._socket)
        self._socket.close()
