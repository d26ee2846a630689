"""AgeGauge: the mean age of the items used since it was last read, in versions."""

from __future__ import annotations


class AgeGauge:
    """A mean that starts again whenever it is read, and stays if nothing was added since."""

    def __init__(self) -> None:
        self._sum = self._count = 0
        self._mean = 0.0

    def add(self, total: int, count: int) -> None:
        """total: the ages of `count` items, added up."""
        self._sum += total
        self._count += count

    def read(self) -> float:
        if self._count:
            self._mean = self._sum / self._count
        self._sum = self._count = 0
        return self._mean
