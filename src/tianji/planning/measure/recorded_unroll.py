"""One recorded unroll, sent to a buffer again and again in place of actors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tianji.channels.interface import Sender
from tianji.channels.layout import Layout
from tianji.config.plan import RunPlan
from tianji.types import PLACE, Array, Stamp


class RecordedUnroll:
    """Sends copies of the unroll on all lanes in turn."""

    def __init__(self, plan: RunPlan, senders: Sequence[Sender], path: Path) -> None:
        self._unroll = tiled(Layout.from_json(plan.layout), dict(np.load(path)))
        self._num_steps = int(np.count_nonzero(self._unroll["valid"][plan.lookahead - 1 :]))
        self._senders = senders
        self._next_lane = 0
        self._length = plan.unroll_length
        self._made = [0] * len(senders)
        """Rows sent on each lane."""

    def send(self, count: int, version: int, grant: Callable[[], object]) -> None:
        """Send this many unrolls of this version; `grant` makes the buffer grant slots."""
        idle = 0
        while count:
            lane = self._next_lane
            self._next_lane = (lane + 1) % len(self._senders)
            sender = self._senders[lane]
            reserved = sender.reserve()
            if reserved is None:
                idle += 1
                if idle == len(self._senders):
                    grant()
                    idle = 0
                continue
            unroll = sender.unroll(reserved.slot)
            for name, array in unroll.items():
                array[...] = self._unroll[name]
            if PLACE in unroll:  # each continues the one before, as in a run
                unroll[PLACE][:] = 0, self._made[lane], self._length
                self._made[lane] += self._length
            stamp = Stamp(lane, reserved.round, version, version, self._num_steps, 0, 0)
            sender.send(reserved.slot, stamp)
            count, idle = count - 1, 0


def save_unroll(path: Path, layout: Layout, unroll: Mapping[str, Array], rows: slice) -> None:
    """Save these rows of an unroll; observations have one more."""
    parts: dict[str, Any] = dict(unroll)
    for field in layout.fields:
        if field.per != "unroll":
            parts[field.name] = parts[field.name][rows.start : rows.stop + (field.per == "obs")]
    with path.open("wb") as file:
        np.savez(file, **parts)


def tiled(layout: Layout, recorded: Mapping[str, Array]) -> dict[str, Array]:
    """Repeat what was recorded until it has the rows and environments of this layout."""
    found = {}
    for field in layout.fields:
        array = recorded[field.name]
        for axis, size in enumerate(layout.shape(field)):
            if array.shape[axis] != size:
                array = np.take(array, np.arange(size) % array.shape[axis], axis=axis)
        found[field.name] = array
    return found
