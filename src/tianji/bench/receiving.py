"""The receiving end of the experiment: a buffer without a learner."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from tianji.bench.message import PAYLOAD, Inspector, aligned_bytes
from tianji.bench.point import Point
from tianji.channels.interface import Receiver
from tianji.channels.memory import Bell
from tianji.engines.loop import run_loop
from tianji.errors import ChannelError

# A store is in no hurry: it sleeps until a sender has sent so many, or half of what it may.
BURST = 128
COPY_BURST_BYTES = 1 << 20  # A receiver that copies is: it copies faster what is still in a cache


@dataclass(frozen=True, slots=True)
class Received:
    """What the receiver measured."""

    num_messages: int
    collection_s: float
    cpu_s: float


class VirtualBuffer:
    """Keeps what arrives, and grants its sender another slot.

    Takes      messages, from all senders
    Gives      grants, until as many messages are under way as were asked for
    Waits for  nothing; a tick that finds nothing says so
    Unblocked  by an arrival
    Stops      when all have been received
    """

    def __init__(self, point: Point, receiver: Receiver) -> None:
        self._receiver = receiver
        self._num_kept = point.num_kept
        self._window = point.window
        hot = max(1, COPY_BURST_BYTES // point.size_bytes) if point.is_copying else BURST
        self._burst = point.num_actors * min(BURST, point.window // 2, hot)
        self._left = self._awaited = 0  # messages not yet granted, and not yet received
        inspector = Inspector(receiver.arrays[PAYLOAD], point.num_actors)
        self._inspect = inspector.compare if point.is_checking else inspector.look
        self._is_copying = point.is_copying
        self._kept: deque[int] = deque()
        self._copies = aligned_bytes(self._num_kept * point.size_bytes if point.is_copying else 0)
        self._copies[:] = 1  # pages are touched before the clock runs
        self._copies = self._copies.reshape(-1, point.size_bytes)
        self._num_copied = 0

    def collect(self, num_messages: int) -> None:
        """From now on: every sender gets its first grants, as far as there is something to send."""
        self._left = self._awaited = num_messages
        lanes = range(self._receiver.num_lanes)
        for lane in lanes:
            share = -(-self._left // (len(lanes) - lane))
            self._grant(lane, min(self._window, share))

    def is_complete(self) -> bool:
        return self._awaited == 0

    def tick(self) -> bool:
        """Keep what has arrived, a burst at a time, so that the senders do not wait for their next
        grants: each gets as many as it sent messages."""
        receiver, arrived = self._receiver, [0] * self._receiver.num_lanes
        keep = self._copy_out if self._is_copying else self._keep_slot
        before = self._awaited
        for _ in range(self._burst):
            if (slot := receiver.take()) is None:
                break
            lane = receiver.stamp(slot).actor
            self._inspect(slot, lane)
            keep(slot)
            arrived[lane] += 1
            self._awaited -= 1
        for lane, count in enumerate(arrived):
            self._grant(lane, count)
        receiver.expect(min(self._burst, self._awaited))
        return self._awaited < before

    def _grant(self, lane: int, count: int) -> None:
        if count and self._left:
            self._left -= self._receiver.grant(lane, 0, min(count, self._left))

    def _keep_slot(self, slot: int) -> None:
        self._kept.append(slot)
        if len(self._kept) > self._num_kept:
            self._receiver.release(self._kept.popleft())

    def _copy_out(self, slot: int) -> None:
        self._copies[self._num_copied % self._num_kept] = self._receiver.arrays[PAYLOAD][slot, 0]
        self._num_copied += 1
        self._receiver.release(slot)


def receive(
    point: Point,
    receiver: Receiver,
    bell: Bell,
    find_lost: Callable[[], str | None],
    when_ready: Callable[[], object],
) -> Received:
    """Wait until every sender is there and warm, then run the experiment."""
    lanes = range(receiver.num_lanes)
    buffer = VirtualBuffer(point, receiver)

    def look_after() -> bool:
        """Raise ChannelError if a sender has died; called when nothing has arrived."""
        lost = find_lost()
        if lost:
            raise ChannelError(f"The experiment cannot be completed: {lost}")
        return False

    def collect(num_messages: int) -> None:
        buffer.collect(num_messages)
        run_loop(lambda: buffer.tick() or look_after(), [], bell, buffer.is_complete)

    run_loop(look_after, [], bell, lambda: all(map(receiver.is_attached, lanes)))
    collect(point.num_warmup)
    when_ready()
    started_ns, cpu_before_ns = time.monotonic_ns(), time.process_time_ns()
    collect(point.num_messages)
    return Received(
        point.num_messages,
        (time.monotonic_ns() - started_ns) / 1e9,
        (time.process_time_ns() - cpu_before_ns) / 1e9,
    )
