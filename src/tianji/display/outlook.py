"""What a single record of metrics does not show: the way to the target and the time left."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from tianji.records import Metrics

if TYPE_CHECKING:
    from tianji.config.run import RunConfig

RATE_WINDOW = 20
"""Records over which the time left is estimated; at two a second, the last ten seconds."""


class Outlook:
    """Takes every record of a run, or its first return and its newest record."""

    def __init__(self, config: RunConfig, first_return: float | None = None) -> None:
        self._config = config
        self._recent: deque[tuple[float, int]] = deque(maxlen=RATE_WINDOW)
        self._first_return = first_return
        self._return: float | None = None
        self.best_return: float | None = None

    def update(self, record: Metrics) -> None:
        self._recent.append((record["wall_s"], record["env_steps"]))
        self._return = record["mean_return_100"]
        if self._return is None:
            return
        if self._first_return is None:
            self._first_return = self._return
        known = (self.best_return, record["best_mean_return_100"], self._return)
        self.best_return = max(value for value in known if value is not None)

    def left_s(self) -> float | None:
        """Return the seconds to the nearest limit, at the recent rate; None with one record."""
        if len(self._recent) < 2:
            return None
        (first_s, first_steps), (last_s, last_steps) = self._recent[0], self._recent[-1]
        limits = [] if self._config.max_wall_s is None else [self._config.max_wall_s - last_s]
        if last_s > first_s and last_steps > first_steps:
            rate = (last_steps - first_steps) / (last_s - first_s)
            limits.append((self._config.max_env_steps - last_steps) / rate)
        return max(0.0, min(limits)) if limits else None

    def return_share(self) -> float | None:
        """Return the share of the way from the first return to the target that is done."""
        now, first, target = self._return, self._first_return, self._config.target_return
        if now is None or first is None or target is None:
            return None
        return 1.0 if now >= target else max(0.0, (now - first) / (target - first))
