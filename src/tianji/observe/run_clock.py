"""The clock that people see: it keeps running while the learner has nothing to report."""

from __future__ import annotations

from collections.abc import Callable

from tianji.types import Clock


class RunClock:
    """Training time: the time of the last record, plus what has passed since.

    >>> clock = RunClock(before_s=60.0)  # of a run that is resumed
    >>> clock.follow(first_step_ns=lambda: 0, now_ns=time.monotonic_ns)
    >>> clock.tick()
    """

    def __init__(self, before_s: float) -> None:
        self.shown_s = before_s
        """Training time at the last tick, or of a newer record."""
        self._base_s = before_s
        self._since_ns: Callable[[], int] = lambda: 0
        self._now_ns: Clock = lambda: 0

    def follow(self, first_step_ns: Callable[[], int], now_ns: Clock) -> None:
        """Count on from the first environment step of another engine; it returns 0 before that."""
        self._base_s, self._since_ns, self._now_ns = self.shown_s, first_step_ns, now_ns

    def set(self, wall_s: float) -> None:
        """Take over the time of a record."""
        recorded_ns = self._now_ns()
        self._since_ns = lambda: recorded_ns
        self._base_s = self.shown_s = wall_s

    def tick(self) -> None:
        since_ns = self._since_ns()
        passed_ns = self._now_ns() - since_ns if since_ns else 0
        self.shown_s = self._base_s + max(0, passed_ns) / 1e9
