"""Losses: gradients that reached no version, and the environment steps that they took.

An actor counts what it drops in its own gauges; what was handed over and is lost is counted here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tianji.channels.gauges import Gauge
from tianji.types import Stamp


class Losses:
    """Knows which tokens of the round that was taken last were in its sums."""

    def __init__(self, gauges: memoryview[int], actor_gauges: Sequence[memoryview[int]]) -> None:
        self._row = gauges
        self._rows = (gauges, *actor_gauges)
        self._version = -1
        self._taken = [0] * len(actor_gauges)
        """Gradients of each actor in that round, its true counts."""
        self._seen = [0] * len(actor_gauges)
        """Tokens of that round."""
        self._gradients_before = 0
        self._steps_before = 0

    def taken(self, version: int, tokens: Iterable[Stamp], counts: Sequence[int]) -> None:
        """A round was taken, with so many gradients of each actor. None of one that was left out,
        whose tokens had been counted."""
        self._version, self._taken = version, list(counts)
        self._seen = [0] * len(counts)
        for stamp in tokens:
            self._see(stamp)

    def came_late(self, stamp: Stamp) -> None:
        """A token of a round that is closed. Its gradient may still have been in the sum when that
        was taken; if not, it is lost."""
        if stamp.oldest_version == self._version:
            self._see(stamp)
        else:
            self._lose(stamp)

    def came_again(self, stamp: Stamp) -> None:
        """A token of a lane that was declared lost: its round is made again, and counts there."""
        self._lose(stamp)

    def _see(self, stamp: Stamp) -> None:
        self._seen[stamp.actor] += 1
        if self._seen[stamp.actor] > self._taken[stamp.actor]:
            self._lose(stamp)

    def _lose(self, stamp: Stamp) -> None:
        self._row[Gauge.DISCARDED] += 1
        self._row[Gauge.DISCARDED_STEPS] += stamp.env_steps

    @property
    def gradients(self) -> int:
        """Dropped in work, left out, or too late."""
        return self._gradients_before + self._now(Gauge.DISCARDED)

    @property
    def steps(self) -> int:
        return self._steps_before + self._now(Gauge.DISCARDED_STEPS)

    def _now(self, gauge: Gauge) -> int:
        return sum(row[gauge] for row in self._rows)

    def state(self) -> dict[str, Any]:
        return {"gradients": self.gradients, "steps": self.steps}

    def load_state(self, state: dict[str, Any]) -> None:
        # A learner that is restarted finds the gauges as they were; they count only once.
        self._gradients_before = int(state["gradients"]) - self._now(Gauge.DISCARDED)
        self._steps_before = int(state["steps"]) - self._now(Gauge.DISCARDED_STEPS)
