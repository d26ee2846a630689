"""A message of the experiment: bytes with its number at head and tail, so that a torn one shows.

Each stamp has 8 bytes, in a message of fewer than 16 bytes 4, 2 or 1. A stamp holds the number of
the message modulo its range.

How fast this machine copies memory: the limit that moving data is held against.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tianji.channels.layout import ALIGN, Layout
from tianji.errors import ChannelError
from tianji.types import Array, Field

PAYLOAD = "payload"
# One number for each message. A memoryview is twice as fast, but needs aligned numbers.
Stamps: TypeAlias = "memoryview[int] | Array"
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
        self._pattern = _pattern(size_bytes)
        whole_words = aligned_bytes(self._pattern.nbytes)
        self._numbers = whole_words.view(np.uint64)
        self.bytes = whole_words[:size_bytes]
        self._sender = sender
        self.vary(0)
        # Each holds one number, which says which message this is.
        self.head, self.tail = stamps_of(self.bytes[None])
        self.last_number = highest_stamp(size_bytes)

    def vary(self, number: int) -> None:
        """Make every byte depend on the number; slow, for the untimed check."""
        np.add(self._pattern, _offset(number, self._sender), out=self._numbers)


def stamps_of(messages: Array) -> tuple[Stamps, Stamps]:
    """Return the stamps at head and tail of messages, [number of messages, bytes]."""
    width, size_bytes = _stamp_bytes(messages.shape[-1]), messages.shape[-1]
    return _stamps(messages[:, :width]), _stamps(messages[:, size_bytes - width :])


def highest_stamp(size_bytes: int) -> int:
    """Return the highest stamp of messages of this size; the next one is 0 again."""
    return int(2 ** (8 * _stamp_bytes(size_bytes)) - 1)


def _stamp_bytes(size_bytes: int) -> int:
    return next(width for width in (8, 4, 2, 1) if width == 1 or size_bytes >= 2 * width)


def _stamps(stamps: Array) -> Stamps:
    numbers = stamps.view(f"u{stamps.shape[-1]}")[:, 0]
    return numbers.data if numbers.flags.aligned else numbers


def _pattern(size_bytes: int) -> NDArray[np.uint64]:
    """Return enough words to hold this many bytes, each with another value."""
    return np.arange(-(-size_bytes // 8), dtype=np.uint64) * np.uint64(_STEP)


def _offset(number: int, sender: int) -> np.uint64:
    return np.uint64((number * _STEP + sender) % 2**64)


class Inspector:
    """Looks at messages where they lie: whole, in order, none lost or doubled."""

    def __init__(self, payloads: Array, num_senders: int) -> None:
        size_bytes = payloads.shape[-1]
        width = _stamp_bytes(size_bytes)
        self._payloads = payloads
        self._head, self._tail = stamps_of(payloads[:, 0])
        self._last_number = highest_stamp(size_bytes)
        self._between_stamps = slice(width, max(width, size_bytes - width))
        self._expected = [0] * num_senders
        self._pattern = _pattern(size_bytes)

    def look(self, slot: int, sender: int) -> None:
        """The stamps at both ends are the next number of this sender."""
        number = self._expected[sender]
        self._expected[sender] = number + 1
        expected = number & self._last_number
        head, tail = self._head[slot], self._tail[slot]
        if head != expected or tail != expected:
            raise ChannelError(
                f"Message {number} of sender {sender} arrived with the stamps {head} and {tail} "
                f"in place of {expected}: it was lost, duplicated, torn or overtaken."
            )

    def compare(self, slot: int, sender: int) -> None:
        """Every byte."""
        number = self._expected[sender]
        self.look(slot, sender)
        expected = (self._pattern + _offset(number, sender)).view(np.uint8)
        inside = self._between_stamps
        if not np.array_equal(self._payloads[slot, 0, inside], expected[inside]):
            raise ChannelError(
                f"The bytes of message {number} of sender {sender} changed on the way."
            )


# Copies go round in a region of this size: larger than most caches, as a store is.
REGION_BYTES = 64 << 20
# Messages under 4 KB fill less of it: more places would take more memory than the messages do.
MAX_PLACES = 1 << 14
REPEATS, REPEAT_S = 3, 0.05


def copy_speeds(size_bytes: int) -> list[float]:
    """Bytes per second of one core copying the same payload into ever new places of a region whose
    pages were touched before; some repeats."""
    source = _touched(size_bytes).data
    num_places = max(2, min(MAX_PLACES, REGION_BYTES // size_bytes))
    region = _touched(num_places * size_bytes)
    places = [region[i * size_bytes : (i + 1) * size_bytes].data for i in range(num_places)]
    return [_one_repeat(source, places) for _ in range(REPEATS)]


def _touched(nbytes: int) -> NDArray[np.uint8]:
    memory = aligned_bytes(nbytes)
    memory[:] = 1
    return memory


def _one_repeat(source: memoryview, places: Sequence[memoryview]) -> float:
    copied, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < REPEAT_S:
        for place in places:
            place[:] = source
        copied += len(places)
    return copied * source.nbytes / elapsed
