"""What is the same for every transport: payloads, stamps, loops, marks.

    sender   payload = sender.payload
             repeat: sleep the sample time; stamp; payload = sender.send(payload)
    receiver repeat: message = receiver.receive(); check its stamps; keep it

Stamps are (sequence number, sender) in the first and in the last 16 bytes.
"""

from __future__ import annotations

import resource
import time
from collections import deque
from dataclasses import dataclass
from struct import Struct
from typing import Any, Protocol

import numpy as np

from benchmarks.transports.points import Point, per_10k_s

STAMP = Struct("<qq")
ALIGNMENT = 64  # copies from an unaligned payload take up to 1.7 times as long
MIXER = 0x9E3779B97F4A7C15
HEAD_START_S = 0.02  # from "all are ready" to the start of the clock


class Sender(Protocol):
    """One actor's end."""

    payload: memoryview  # the one that may be written now

    def send(self, payload: memoryview) -> memoryview:
        """Send, and return the payload that may be written next (the same one, or one of a pool).

        Waits while as much is in flight as the transport allows."""
        ...

    def flush(self) -> None:
        """Return when nothing more has to be done for what was sent to arrive."""
        ...

    def close(self) -> None: ...


class Receiver(Protocol):
    """The buffer's end."""

    max_kept: int  # how many messages it can hand over without getting any back

    def receive(self) -> Any:
        """Wait for the next message: anything that has the buffer protocol."""
        ...

    def close(self) -> None: ...


# ------------------------------------------------------------------------------------ payloads


def make_payload(size_bytes: int) -> memoryview:
    """Aligned memory whose pages have been touched."""
    raw = np.ones(size_bytes + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size_bytes].data


def fill(payload: memoryview, sequence: int, sender: int) -> None:
    """Other bytes in every message, for the run that compares them all."""
    np.asarray(payload)[:] = expected_bytes(len(payload), sequence, sender)


def expected_bytes(size_bytes: int, sequence: int, sender: int) -> np.ndarray[Any, Any]:
    """What `fill` writes: no word of eight bytes occurs twice in a run."""
    words = np.arange(-(-size_bytes // 8), dtype=np.uint64)
    words += np.uint64((sender << 48) + (sequence << 24))
    words *= np.uint64(MIXER)  # odd, so that other words give other bytes, all of them changing
    return words.view(np.uint8)[:size_bytes]


def stamp(payload: memoryview, sequence: int, sender: int) -> None:
    STAMP.pack_into(payload, 0, sequence, sender)
    STAMP.pack_into(payload, len(payload) - STAMP.size, sequence, sender)


# --------------------------------------------------------------------------------------- loops


def send_all(point: Point, actor: int, sender: Sender) -> float:
    """Send this actor's share; the mean time that its sleeps really took, in seconds."""
    payload, pause_s, slept_s = sender.payload, point.sample_time_s, 0.0
    count = point.share(actor)
    for sequence in range(count):
        if pause_s:
            began = time.perf_counter()
            time.sleep(pause_s)
            slept_s += time.perf_counter() - began
        if point.is_check:
            fill(payload, sequence, actor)
        stamp(payload, sequence, actor)
        payload = sender.send(payload)
    sender.payload = payload
    sender.flush()
    return slept_s / max(1, count)


class Keeper:
    """Checks every message and keeps the newest ones: as they are, or copied into a region.

    A transport that receives into memory of the receiver's choice asks for `slot()` and then calls
    `check` alone: its message has been kept by being received.
    """

    def __init__(self, point: Point, max_kept: int | None = None) -> None:
        self.received = 0
        self._point = point
        self._next = [0] * point.actors
        count = point.num_kept if max_kept is None else min(max_kept, point.num_kept)
        self._kept: deque[Any] = deque(maxlen=count)
        self._slots: list[memoryview] = []

    def keep(self, message: Any) -> None:
        if not self._point.is_copying:
            self.check(message)
            if self._point.is_check and len(self._kept) == self._kept.maxlen:
                self._compare(self._kept[0])  # nobody may have written to it meanwhile
            self._kept.append(message)
            return
        slot = self.slot()
        slot[:] = memoryview(message).cast("B")
        self.check(slot)

    def slot(self) -> memoryview:
        """Memory for the next message, in a region whose pages have been touched."""
        if not self._slots:
            self.make_region()
        return self._slots[self.received % len(self._slots)]

    def make_region(self) -> None:
        """Called before the clock starts, where it is known that slots will be needed."""
        size = self._point.size_bytes
        region = make_payload(self._point.num_kept * size)
        self._slots = [
            region[start : start + size] for start in range(0, self._point.num_kept * size, size)
        ]

    def check(self, message: Any) -> None:
        """Whole, from the sender it says it is from, and the next one of that sender."""
        head = STAMP.unpack_from(message, 0)
        tail = STAMP.unpack_from(message, self._point.size_bytes - STAMP.size)
        sequence, sender = head
        if head != tail:
            raise AssertionError(f"torn message: head {head}, tail {tail}")
        if sequence != self._next[sender]:
            raise AssertionError(
                f"sender {sender} sent message {self._next[sender]} next, {sequence} arrived"
            )
        self._next[sender] = sequence + 1
        self.received += 1
        if self._point.is_check:
            self._compare(message)

    def start_over(self) -> None:
        """After the warm-up: count from nought, keep what is kept."""
        self.received = 0
        self._next = [0] * self._point.actors

    def finish(self) -> None:
        """In the checking run, look once more at what is still kept."""
        if self._point.is_check:
            for message in self._kept:
                self._compare(message)

    def _compare(self, message: Any) -> None:
        found = np.frombuffer(memoryview(message).cast("B"), np.uint8)
        sequence, sender = STAMP.unpack_from(message, 0)
        wanted = expected_bytes(self._point.size_bytes, sequence, sender)
        stamp(wanted.data, sequence, sender)
        if not np.array_equal(found, wanted):
            raise AssertionError(f"message {sequence} of sender {sender} arrived with other bytes")


# --------------------------------------------------------------------------------------- marks


def cpu_s() -> float:
    """Processor time of this process so far, all its threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def wait_until(monotonic_s: float) -> None:
    time.sleep(max(0.0, monotonic_s - time.monotonic()))


@dataclass(frozen=True)
class SenderMarks:
    """What a sender reports."""

    cpu_s: float
    sample_s: float


@dataclass(frozen=True)
class ReceiverMarks:
    """What the receiver reports."""

    cpu_s: float
    collection_s: float
    received: int
    kept: int = 0


def figures(
    name: str, point: Point, senders: list[SenderMarks], receiver: ReceiverMarks
) -> dict[str, Any]:
    """The one dictionary that every transport reports for a point."""
    rate = receiver.received / receiver.collection_s
    return {
        "transport": name,
        "size_bytes": point.size_bytes,
        "actors": point.actors,
        "sample_time_s": point.sample_time_s,
        "copying": point.is_copying,
        "messages": point.messages,
        "received": receiver.received,
        "collection_s": receiver.collection_s,
        "collection_s_per_10k": per_10k_s(receiver.collection_s, point.messages),
        "messages_per_s": rate,
        "mb_per_s": rate * point.size_bytes / 1e6,
        "sender_cpu_us": sum(marks.cpu_s for marks in senders) / point.messages * 1e6,
        "receiver_cpu_us": receiver.cpu_s / point.messages * 1e6,
        "measured_sample_s": sum(marks.sample_s for marks in senders) / len(senders),
    }
