"""The Board in shared memory: one writer, any number of readers, only the latest value matters.

The payload lies in NUM_COPIES places in turn. The writer always writes the place that is furthest
from the latest one and then points to it, so it never waits. A reader copies the latest place and
checks afterwards that its version stamp is still the same; only when the writer has lapped it
(NUM_COPIES - 1 posts during one copy) does it copy again.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable

import numpy as np

from tianji.channels.interface import Bytes
from tianji.channels.memory import Seat, Segment, new_fence
from tianji.errors import ChannelError

NUM_COPIES = 4
_HEADER_BYTES = mmap.PAGESIZE
_PAYLOAD, _LATEST, _VERSION, _STAMPS = 0, 1, 2, 3


def board_bytes(payload_bytes: int) -> int:
    return _HEADER_BYTES + NUM_COPIES * _stride(payload_bytes)


def _stride(payload_bytes: int) -> int:
    return -(-payload_bytes // 64) * 64


class _Board:
    """The shared words and payloads, the same for both ends."""

    def __init__(self, segment: Segment) -> None:
        self.words = segment.words(0, _STAMPS + NUM_COPIES)
        size = self.words[_PAYLOAD]
        stride = _stride(size)
        everything = np.frombuffer(segment.memory, np.uint8)
        starts = [_HEADER_BYTES + copy * stride for copy in range(NUM_COPIES)]
        self.payloads: list[Bytes] = [everything[start : start + size] for start in starts]


class ShmBoardWriter:
    """The only writer. It sets the size of the board, because only it knows the model."""

    def __init__(self, fd: int, payload_bytes: int, name: str = "the policy") -> None:
        is_new = os.fstat(fd).st_size == 0
        nbytes = board_bytes(payload_bytes)
        segment = Segment.allocate(fd, name, nbytes) if is_new else Segment.attach(fd)
        self._seat = Seat(segment, 0, "a writer of this board")
        self._fence = new_fence()
        words = segment.words(0, _STAMPS + NUM_COPIES)
        if segment.nbytes != nbytes or words[_PAYLOAD] not in (0, payload_bytes):
            raise ChannelError(
                f"{payload_bytes} bytes of {name} cannot be posted: this board of {segment.nbytes} "
                "bytes was made for another size. A process that takes over must build the same "
                "model."
            )
        if words[_PAYLOAD] == 0:  # new, or its writer died before the header was complete
            for word in range(_VERSION, _STAMPS + NUM_COPIES):
                words[word] = -1
            self._fence()  # a reader that sees the size sees the -1 too
            words[_PAYLOAD] = payload_bytes
        self._board = _Board(segment)

    def post(self, version: int, write: Callable[[Bytes], None]) -> None:
        words = self._board.words
        copy = (words[_LATEST] + 1) % NUM_COPIES
        words[_STAMPS + copy] = -1
        self._fence()
        write(self._board.payloads[copy])
        self._fence()
        words[_STAMPS + copy] = version
        words[_LATEST] = copy
        self._fence()
        words[_VERSION] = version

    def version(self) -> int:
        """Return the highest version posted by this writer or an earlier one; -1 if none. A version
        counts as posted even if its writer died before readers were told of it."""
        words = self._board.words
        return max(words[_VERSION], words[_STAMPS + words[_LATEST]])


class ShmBoardReader:
    """One of many readers. The board may still have no size when it is opened."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._fence = new_fence()
        self._board: _Board | None = None

    def version(self) -> int:
        if self._board is None:
            if os.fstat(self._fd).st_size == 0:
                return -1
            segment = Segment.attach(self._fd)
            if segment.words(0, 1)[_PAYLOAD] == 0:
                return -1
            self._board = _Board(segment)
        return self._board.words[_VERSION]

    def latest(self, read: Callable[[Bytes], None]) -> int:
        if self.version() < 0 or self._board is None:
            raise ChannelError("Nothing has been posted on this board yet.")
        words = self._board.words
        while True:
            copy = words[_LATEST]
            version = words[_STAMPS + copy]
            self._fence()
            if version >= 0:
                read(self._board.payloads[copy])
                self._fence()
                if words[_STAMPS + copy] == version:
                    return version
