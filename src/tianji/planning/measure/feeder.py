"""Feeds a buffer with one recorded unroll, again and again, in place of actors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from tianji.channels.layout import Layout
from tianji.channels.memory import BELL_BYTES, Bell, Segment
from tianji.channels.shm import ShmReceiver, ShmSender, StreamMemory
from tianji.config.plan import RunPlan
from tianji.types import Array, Stamp


class Feeder:
    """The senders of all lanes, and the receiver that belongs to them."""

    def __init__(self, plan: RunPlan, recorded: Path) -> None:
        layout = Layout.from_json(plan.layout)
        self._unroll = tiled(layout, dict(np.load(recorded)))
        self._num_steps = int(np.count_nonzero(self._unroll["valid"][plan.lookahead - 1 :]))
        memory = StreamMemory.create(layout, plan.num_slots, plan.num_actors)
        segment = Segment.create("bells", (plan.num_actors + 1) * BELL_BYTES)
        bells = [Bell(segment, index * BELL_BYTES) for index in range(plan.num_actors + 1)]
        for bell in bells:
            bell.initialise()
        self.receiver = ShmReceiver(memory, bells[1:])
        self._senders = [ShmSender(memory, lane, bells[0]) for lane in range(plan.num_actors)]
        self._next_lane = 0

    def feed(self, count: int, version: int, grant: Callable[[], object]) -> None:
        """Send so many unrolls of this version; `grant` makes the buffer grant slots."""
        while count:
            sent = self._feed_granted(count, version)
            count -= sent
            if not sent:
                grant()

    def _feed_granted(self, most: int, version: int) -> int:
        """Lanes in turn, one unroll each, for as long as they have grants."""
        sent = idle = 0
        while sent < most and idle < len(self._senders):
            lane, sender = self._next_lane, self._senders[self._next_lane]
            self._next_lane = (lane + 1) % len(self._senders)
            reserved = sender.reserve()
            if reserved is None:
                idle += 1
                continue
            for name, array in sender.unroll(reserved.slot).items():
                array[...] = self._unroll[name]
            stamp = Stamp(lane, reserved.round, version, version, self._num_steps, 0, 0)
            sender.send(reserved.slot, stamp)
            sent, idle = sent + 1, 0
        return sent


def tiled(layout: Layout, recorded: Mapping[str, Array]) -> dict[str, Array]:
    """What was recorded, repeated over the rows and environments that this layout has more."""
    found = {}
    for field in layout.fields:
        array = recorded[field.name]
        for axis, size in enumerate(layout.shape(field)):
            if array.shape[axis] != size:
                array = np.take(array, np.arange(size) % array.shape[axis], axis=axis)
        found[field.name] = array
    return found
