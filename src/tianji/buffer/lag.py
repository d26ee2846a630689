"""Lag of everything that entered the store: mean, p95, max and a histogram, in versions."""

from __future__ import annotations

from typing import Any

from tianji.records import Lag

MOST = 64  # larger lags are counted in the last bin, and shown in max


class LagGauge:
    """A histogram is enough for all of them, and costs one addition per unroll."""

    def __init__(self) -> None:
        self.histogram = [0] * (MOST + 1)
        self._max = 0

    def add(self, lag: int) -> None:
        self.histogram[min(max(lag, 0), MOST)] += 1
        self._max = max(self._max, lag)

    def summary(self) -> Lag:
        total = sum(self.histogram)
        if not total:
            return Lag(mean=0.0, p95=0, max=0)
        mean = sum(lag * count for lag, count in enumerate(self.histogram)) / total
        return Lag(mean=mean, p95=self._percentile(0.95, total), max=self._max)

    def _percentile(self, share: float, total: int) -> int:
        seen = 0
        for lag, count in enumerate(self.histogram):
            seen += count
            if seen >= share * total:
                return lag
        return MOST

    def counts(self) -> list[int]:
        """The histogram without its empty end."""
        last = max((lag for lag, count in enumerate(self.histogram) if count), default=0)
        return self.histogram[: last + 1]

    def state(self) -> dict[str, Any]:
        return {"histogram": list(self.histogram), "max": self._max}

    def load_state(self, state: dict[str, Any]) -> None:
        self.histogram = list(state["histogram"])
        self._max = int(state["max"])
