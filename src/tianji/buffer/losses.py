"""Losses: items that reached no version, and the environment steps that they took.

An actor counts what it drops in its own gauges; what was sent and is lost is counted here.
"""

from __future__ import annotations

from typing import Any

from tianji.channels.gauges import Gauge
from tianji.channels.orders import BufferRows
from tianji.types import Stamp


class Losses:
    """Counts what was lost in the whole run, restarts included."""

    def __init__(self, rows: BufferRows) -> None:
        self._row = rows.gauges
        self._rows = (rows.gauges, *(actor.gauges for actor in rows.actors))
        self._items_before = self._steps_before = 0

    def lose(self, stamp: Stamp) -> None:
        self._row[Gauge.DISCARDED] += 1
        self._row[Gauge.DISCARDED_STEPS] += stamp.env_steps

    @property
    def items(self) -> int:
        return self._items_before + self._now(Gauge.DISCARDED)

    @property
    def steps(self) -> int:
        return self._steps_before + self._now(Gauge.DISCARDED_STEPS)

    def _now(self, gauge: Gauge) -> int:
        return sum(row[gauge] for row in self._rows)

    def state(self) -> dict[str, Any]:
        return {"discarded": self.items, "discarded_steps": self.steps}

    def load_state(self, state: dict[str, Any]) -> None:
        # A learner that is restarted finds the gauges as they were; they count only once.
        self._items_before = int(state["discarded"]) - self._now(Gauge.DISCARDED)
        steps = int(state.get("discarded_steps", 0))  # checkpoints of version 0.1 have none
        self._steps_before = steps - self._now(Gauge.DISCARDED_STEPS)
