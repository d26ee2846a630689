"""A board forwarded to another host: the latest version crosses, once, and versions never fall."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np

from tianji.channels.board import ShmBoardWriter
from tianji.channels.interface import BoardReader, Bytes
from tianji.gateways.interface import Outlet, Settled
from tianji.gateways.ports.sending import SendingPort
from tianji.gateways.refusals import Refusal, Refused

VERSION = struct.Struct("!q")
NUM_COPIES = 2  # one on its way, one for the version that comes meanwhile


class BoardSource(SendingPort):
    """Reads the board on the writer's host. Versions that come while two are on their way are
    skipped, except for the latest."""

    def __init__(self, name: str, reader: BoardReader, max_bytes: int) -> None:
        self.wiring = f"board {name}"
        self.max_body_bytes = max_bytes
        self._reader = reader
        self._free: list[bytearray] = [bytearray() for _ in range(NUM_COPIES)]
        self._forwarded = -1
        self.num_forwarded = 0

    def pump(self) -> bool:
        before = self.num_forwarded
        self.forward()
        return self.num_forwarded != before

    def forward(self) -> bool:
        """Hand the latest version to the link; return whether that is done, so that what is sent
        next arrives behind it."""
        if self._reader.version() <= self._forwarded:
            return True
        if not self._free or not self._outlet.has_room(len(self._free[-1])):
            return False
        copy = self._free.pop()

        def read(payload: Bytes) -> None:
            if len(copy) != len(payload):
                copy[:] = bytes(len(payload))
            np.copyto(np.frombuffer(copy, np.uint8), payload)

        self._forwarded = self._reader.latest(read)
        self._outlet.send(VERSION.pack(self._forwarded), memoryview(copy), self._giving_back(copy))
        self.num_forwarded += 1
        return True

    def _giving_back(self, copy: bytearray) -> Settled:
        return lambda _: self._free.append(copy)

    def reset(self) -> None:
        """A new peer has no version yet."""
        self._forwarded = -1


class BoardSink:
    """Writes the board on the readers' host."""

    def __init__(
        self, name: str, fd: int, max_bytes: int, wake: Callable[[], None] = lambda: None
    ) -> None:
        """fd: the board's memory, which gets its size with the first version.
        wake: wakes the readers that wait for a version."""
        self.wiring = f"board {name}"
        self.max_body_bytes = max_bytes
        self._name = name
        self._fd = fd
        self._wake = wake
        self._arriving = memoryview(bytearray())
        self._writer: ShmBoardWriter | None = None

    def open(self, outlet: Outlet) -> None:
        """This end sends nothing."""

    def pump(self) -> bool:
        return False

    def place(self, note: bytes, nbytes: int) -> memoryview | None:
        if len(note) != VERSION.size or (self._arriving and len(self._arriving) != nbytes):
            raise Refused(Refusal.GARBAGE)
        if not self._arriving:
            self._arriving = memoryview(bytearray(nbytes))
        return self._arriving

    def receive(self, note: bytes, body: memoryview | None) -> None:
        (version,) = VERSION.unpack(note)
        arrived = np.frombuffer(self._arriving, np.uint8)
        if self._writer is None:
            self._writer = ShmBoardWriter(self._fd, len(arrived), self._name)
        if version > self._writer.version():
            self._writer.post(version, lambda payload: np.copyto(payload, arrived))
            self._wake()

    def interrupted(self) -> None:
        """The version arrives again from its beginning."""

    def reset(self) -> None:
        """The board keeps its version: a new peer's versions count only if they are newer."""
