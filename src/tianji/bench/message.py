"""A message of the experiment: bytes with a stamp at head and tail, so that a torn one shows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tianji.channels.layout import ALIGN, Layout
from tianji.errors import ChannelError
from tianji.types import Array, Field

PAYLOAD = "payload"
_STEP = 0x9E3779B97F4A7C15  # odd, so that the words of two messages differ everywhere


def make_layout(size_bytes: int) -> Layout:
    """One slot holds one message."""
    return Layout((Field(PAYLOAD, "uint8", (size_bytes,), "unroll"),), num_rows=1, num_envs=1)


def aligned_bytes(nbytes: int) -> NDArray[np.uint8]:
    """Memory that begins at a cache line: copying from elsewhere takes up to 1.7 times as long."""
    memory = np.zeros(nbytes + ALIGN, np.uint8)
    start = -memory.ctypes.data % ALIGN
    return memory[start : start + nbytes]


class Payload:
    """What one sender sends again and again; only its number changes, unless it is `vary`ed."""

    def __init__(self, size_bytes: int, sender: int) -> None:
        self.bytes = aligned_bytes(size_bytes)
        self._numbers = self.bytes.view(np.uint64)
        self._pattern = _pattern(size_bytes)
        self._sender = sender
        self.vary(0)
        self.words = self.bytes.data.cast("q")
        """The first and the last say which message this is."""

    def vary(self, number: int) -> None:
        """Make every byte depend on the number; slow, for the untimed check."""
        np.add(self._pattern, _offset(number, self._sender), out=self._numbers)

    def check_fits(self, messages: Array) -> None:
        """That the slots at the other end are made for messages of this size."""
        slot_bytes = messages.shape[-1]
        if self.bytes.nbytes != slot_bytes:
            raise ChannelError(
                f"A message of {self.bytes.nbytes} bytes does not fit its slot of {slot_bytes}. "
                "Start both ends with the same size."
            )


def _pattern(size_bytes: int) -> NDArray[np.uint64]:
    return np.arange(size_bytes // 8, dtype=np.uint64) * np.uint64(_STEP)


def _offset(number: int, sender: int) -> np.uint64:
    return np.uint64((number * _STEP + sender) % 2**64)


class Inspector:
    """Looks at messages where they lie: whole, in order, none lost or doubled."""

    def __init__(self, payloads: Array, num_senders: int) -> None:
        self._payloads = payloads
        self._head = payloads[:, 0, :8].view(np.int64)[:, 0].data
        self._tail = payloads[:, 0, -8:].view(np.int64)[:, 0].data
        self._expected = [0] * num_senders
        self._pattern = _pattern(payloads.shape[-1])

    def look(self, slot: int, sender: int) -> None:
        """The stamps at both ends are the next number of this sender."""
        expected = self._expected[sender]
        self._expected[sender] = expected + 1
        head, tail = self._head[slot], self._tail[slot]
        if head != expected or tail != expected:
            raise ChannelError(
                f"Message {expected} of sender {sender} arrived with the stamps {head} and {tail}: "
                "it was lost, doubled, torn or overtaken."
            )

    def compare(self, slot: int, sender: int) -> None:
        """Every byte."""
        number = self._expected[sender]
        self.look(slot, sender)
        found = self._payloads[slot, 0].view(np.uint64)[1:-1]
        if not np.array_equal(found, (self._pattern + _offset(number, sender))[1:-1]):
            raise ChannelError(f"Message {number} of sender {sender} arrived with other bytes.")
