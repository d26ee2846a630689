"""The greeting at the start of a connection, in four messages of fixed size; pure.

    connector  ->  magic, name, wiring, a random number
    listener   ->  a random number, proof
    connector  ->  what it remembers (Hello), proof
    listener   ->  what it remembers (Hello), proof

A proof is an HMAC with the run's secret over everything that was said so far, so that a recorded
greeting is worth nothing. Nothing is believed, and no link is disturbed, before the proof is right.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import struct
from collections.abc import Callable
from typing import NamedTuple

from tianji.gateways.links.session import Hello
from tianji.gateways.refusals import Refusal, Refused

MAGIC = b"tianji01"
_RANDOM_BYTES = _PROOF_BYTES = 32
_MAX_NAME_BYTES = 64
_FIRST = struct.Struct(f"!8s{_MAX_NAME_BYTES}sI{_RANDOM_BYTES}s")
_HELLO = struct.Struct("!3Q")
_LATER_BYTES = _RANDOM_BYTES + _PROOF_BYTES
_HELLO_BYTES = _HELLO.size + _PROOF_BYTES


class Visitor(NamedTuple):
    """A connector that has proved itself."""

    name: str
    hello: Hello


class Transcript:
    """Everything that was said so far, and proofs over it."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._said = hashlib.sha256()

    def say(self, message: bytes) -> bytes:
        self._said.update(message)
        return message

    def prove(self, content: bytes) -> bytes:
        """Return the content with a proof behind it."""
        self.say(content)
        return content + self.say(self._proof())

    def believe(self, message: bytes) -> bytes:
        """Return the content of a message whose proof is right."""
        content, proof = message[:-_PROOF_BYTES], message[-_PROOF_BYTES:]
        self.say(content)
        if not hmac.compare_digest(self._proof(), proof):
            raise Refused(Refusal.STRANGER)
        self.say(proof)
        return content

    def _proof(self) -> bytes:
        return hmac.digest(self._secret, self._said.digest(), "sha256")


class ConnectorGreeting:
    """The end that connects."""

    def __init__(self, secret: bytes, name: str, wiring: int, hello: Hello) -> None:
        """wiring: equal for ends with the same channels."""
        self._transcript = Transcript(secret)
        self._hello = hello
        self._first = _FIRST.pack(
            MAGIC, name.encode()[:_MAX_NAME_BYTES], wiring, secrets.token_bytes(_RANDOM_BYTES)
        )
        self.needs = _LATER_BYTES
        self.welcomed: Hello | None = None

    def begin(self) -> bytes:
        return self._transcript.say(self._first)

    def answer(self, message: bytes) -> bytes:
        content = self._transcript.believe(message)
        if self.needs == _LATER_BYTES:
            self.needs = _HELLO_BYTES
            return self._transcript.prove(_HELLO.pack(*self._hello))
        self.needs = 0
        self.welcomed = Hello._make(_HELLO.unpack(content))
        return b""


class ListenerGreeting:
    """The end that listens."""

    def __init__(
        self,
        secret: bytes,
        wiring_of: Callable[[str], int | None],
        meet: Callable[[Visitor], Hello],
    ) -> None:
        """wiring_of: the wiring of the link to a host, None where no such host is expected.
        meet: called with a connector that has proved itself; returns what to tell it."""
        self._transcript = Transcript(secret)
        self._wiring_of = wiring_of
        self._meet = meet
        self._name = ""
        self._wiring = 0
        self.needs = _FIRST.size

    def begin(self) -> bytes:
        return b""

    def answer(self, message: bytes) -> bytes:
        if self.needs == _FIRST.size:
            return self._challenge(message)
        content = self._transcript.believe(message)
        wiring = self._wiring_of(self._name)
        if wiring is None or wiring != self._wiring:
            raise Refused(Refusal.MISWIRED)
        self.needs = 0
        hello = self._meet(Visitor(self._name, Hello._make(_HELLO.unpack(content))))
        return self._transcript.prove(_HELLO.pack(*hello))

    def _challenge(self, message: bytes) -> bytes:
        magic, name, self._wiring, _ = _FIRST.unpack(message)
        if magic != MAGIC:
            raise Refused(Refusal.GARBAGE)
        try:
            self._name = name.rstrip(b"\0").decode()
        except UnicodeDecodeError:
            raise Refused(Refusal.GARBAGE) from None
        self._transcript.say(message)
        self.needs = _HELLO_BYTES
        return self._transcript.prove(secrets.token_bytes(_RANDOM_BYTES))
