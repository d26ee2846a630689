"""A connection until its greeting is over: TLS first, then proofs, all within a time limit."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from selectors import EVENT_READ, EVENT_WRITE
from typing import Protocol

from tianji.gateways.links.connection import Connection
from tianji.gateways.refusals import Refusal, Refused
from tianji.gateways.watch import Watch

TIME_LIMIT_NS = 5_000_000_000


class Greeting(Protocol):
    """Either end's part in a greeting."""

    needs: int
    """Bytes of the message that is expected next; 0 when the greeting is over."""

    def begin(self) -> bytes: ...

    def answer(self, message: bytes) -> bytes:
        """Return what to say next."""


class Meeting:
    """Drives one greeting as its socket becomes ready."""

    def __init__(
        self,
        connection: Connection,
        greeting: Greeting,
        watch: Watch,
        deadline_ns: int,
        on_over: Callable[[Meeting, Refusal | None], None],
    ) -> None:
        """on_over: called once. The connection is ready for its link if `is_met`; if not, it is
        closed, and the reason is None where the connection just broke."""
        self.connection = connection
        self.deadline_ns = deadline_ns
        self.is_met = self._is_over = False
        self.is_mute = True
        """The other end has said nothing so far."""
        self._greeting = greeting
        self._watch = watch
        self._on_over = on_over
        self._has_begun = False
        self._message = b""

    def proceed(self, _events: int = 0) -> None:
        """Go on as far as the socket allows."""
        try:
            events = self._advance()
        except Refused as refused:
            self.fail(refused.refusal)
        except ssl.SSLError:
            self.fail(Refusal.STRANGER)
        except OSError:
            self.fail(None)
        else:
            if events:
                self._watch.set(self.connection.socket, events, self.proceed)
            else:
                self._end(is_met=True)

    def _advance(self) -> int:
        """Return the events to wait for; 0 when the greeting is over."""
        if self.is_mute:
            first = self.connection.peek()
            if first == b"":
                raise ConnectionResetError
            self.is_mute = first is None
        if not self._has_begun:
            if events := self.connection.shake_hands():
                return events
            self._has_begun = True
            self.connection.queue(self._greeting.begin())
        while self._greeting.needs:
            if not self.connection.write():
                return EVENT_WRITE
            if not self._receive():
                return EVENT_READ
            message, self._message = self._message, b""
            self.connection.queue(self._greeting.answer(message))
        return 0

    def _receive(self) -> bool:
        """Return whether the message is complete. Nothing behind it is read."""
        while (missing := self._greeting.needs - len(self._message)) > 0:
            buffer = bytearray(missing)
            count = self.connection.receive_into(memoryview(buffer))
            if count < 0:
                return False
            if count == 0:
                raise ConnectionResetError
            self._message += buffer[:count]
        return True

    def fail(self, refusal: Refusal | None) -> None:
        self._end(is_met=False, refusal=refusal)

    def _end(self, is_met: bool, refusal: Refusal | None = None) -> None:
        if self._is_over:
            return
        self._is_over, self.is_met = True, is_met
        self._watch.remove(self.connection.socket)
        if not is_met:
            self.connection.close()
        self._on_over(self, refusal)
