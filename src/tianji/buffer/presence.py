"""Who is there: actors that have come, that were replaced, that will never come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tianji.channels.gauges import Activity, Gauge
from tianji.channels.interface import Receiver


class Changes(NamedTuple):
    """Since we looked last."""

    come: list[int]
    given_up: list[int]


class Presence:
    """Looks only at actors that are missing: there may be thousands."""

    def __init__(
        self,
        receiver: Receiver,
        gauges: memoryview[int],
        actor_gauges: Sequence[memoryview[int]],
    ) -> None:
        self._receiver = receiver
        self._gauges = gauges
        self._actor_gauges = actor_gauges
        self._resets_done = sum(row[Gauge.LANE_RESETS_DONE] for row in actor_gauges)
        self.absent = set(range(receiver.num_lanes))
        """Not attached, as far as we know."""

    def changes(self) -> Changes:
        changes = Changes([], [])
        for actor in tuple(self.absent):
            if self._actor_gauges[actor][Gauge.ACTIVITY] == Activity.STOPPED:
                changes.given_up.append(actor)
            elif self._receiver.is_attached(actor):
                changes.come.append(actor)
        self.absent.difference_update(changes.come, changes.given_up)
        return changes

    def replaced(self) -> list[tuple[int, int]]:
        """Actors that were replaced since we looked last, and how often in all. The supervisor
        counts it in the actors' gauges, and for all of them together in ours."""
        if self._gauges[Gauge.LANE_RESETS] == self._resets_done:
            return []
        counts = [row[Gauge.LANE_RESETS] for row in self._actor_gauges]
        done = [row[Gauge.LANE_RESETS_DONE] for row in self._actor_gauges]
        return [(actor, count) for actor, count in enumerate(counts) if count != done[actor]]

    def lost(self, actor: int, resets: int) -> None:
        """Its lane was reset, after so many replacements."""
        self.absent.add(actor)
        row = self._actor_gauges[actor]
        self._resets_done += resets - row[Gauge.LANE_RESETS_DONE]
        row[Gauge.LANE_RESETS_DONE] = resets  # last: the new actor waits for it
