"""What a single record of metrics does not say: how far the run has come and how long it takes."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tianji.config.run import RunConfig

RATE_WINDOW = 20
"""Records over which the time left is estimated; at two a second, the last ten seconds."""


class Outlook:
    """Fed with every record of a run, or with its first return and the newest record."""

    def __init__(self, config: RunConfig, first_return: float | None = None) -> None:
        self._config = config
        self._recent: deque[tuple[float, int]] = deque(maxlen=RATE_WINDOW)
        self._first_return = first_return
        self._return: float | None = None
        self.best_return: float | None = None

    def update(self, record: Mapping[str, Any]) -> None:
        self._recent.append((record.get("wall_s") or 0.0, record.get("env_steps") or 0))
        self._return = record.get("mean_return_100")
        if self._return is None:
            return
        if self._first_return is None:
            self._first_return = self._return
        known = (self.best_return, record.get("best_mean_return_100"), self._return)
        self.best_return = max(value for value in known if value is not None)

    def left_s(self) -> float | None:
        """Seconds until the first limit is reached, at the rate of the last records."""
        if not self._recent:
            return None
        (first_s, first_steps), (last_s, last_steps) = self._recent[0], self._recent[-1]
        limits = [] if self._config.max_wall_s is None else [self._config.max_wall_s - last_s]
        if last_s > first_s and last_steps > first_steps:
            rate = (last_steps - first_steps) / (last_s - first_s)
            limits.append((self._config.max_env_steps - last_steps) / rate)
        return max(0.0, min(limits)) if limits else None

    def return_share(self) -> float | None:
        """How much of the way from the first return to the target is behind us."""
        now, first, target = self._return, self._first_return, self._config.target_return
        if now is None or first is None or target is None:
            return None
        return 1.0 if now >= target else max(0.0, (now - first) / (target - first))
