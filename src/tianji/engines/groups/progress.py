"""Steps and episodes of all groups as those of one run. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

from tianji.types import Episode

PATIENCE_NS = 2 * 10**9
"""A group that has reported nothing for this long is not waited for."""


class RunCount:
    """Adds up the environment steps, or the updates, of all groups.

    A group that restarts goes back to its checkpoint. What it lost was done and stays counted, so
    that the run's count never falls.
    """

    def __init__(self, restored: Sequence[int], total: int) -> None:
        """restored: what each group begins with. total: the count of the run so far."""
        self._known = tuple(restored)
        self._total = total

    def see(self, counts: Sequence[int]) -> None:
        """Take the present count of each group; 0 of a group that has not begun."""
        pairs = list(zip(self._known, counts, strict=True))
        self._total += sum(max(0, count - known) for known, count in pairs)
        self._known = tuple(count or known for known, count in pairs)

    @property
    def by_group(self) -> tuple[int, ...]:
        return self._known

    @property
    def total(self) -> int:
        return self._total

    def others(self, group: int) -> int:
        """Return the part of the total that this group does not count."""
        return self._total - self._known[group]


class EpisodeMerge:
    """Puts the episodes of all groups in the order of their ends.

    An episode is passed on once every group has reported up to its end, so that a group which
    reports later cannot come before it. Groups that are silent are not waited for.
    """

    def __init__(self, num_groups: int, now_ns: int) -> None:
        self._until_ns = [0] * num_groups
        self._heard_ns = [now_ns] * num_groups
        self._waiting: list[Episode] = []

    def add(self, group: int, until_ns: int, episodes: Sequence[Episode], now_ns: int) -> None:
        """Take the report of a group: all its episodes up to a time."""
        self._until_ns[group] = until_ns
        self._heard_ns[group] = now_ns
        self._waiting += episodes

    def ready(self, now_ns: int) -> list[Episode]:
        """Return the episodes that no other can precede, in order."""
        heard = zip(self._until_ns, self._heard_ns, strict=True)
        borders = [until for until, at_ns in heard if now_ns - at_ns < PATIENCE_NS]
        if not borders:
            return self.rest()
        border_ns = min(borders)
        ready = [episode for episode in self._waiting if episode.finished_ns <= border_ns]
        self._waiting = [e for e in self._waiting if e.finished_ns > border_ns]
        return sorted(ready)

    def rest(self) -> list[Episode]:
        """Return all that are left, in order."""
        rest, self._waiting = sorted(self._waiting), []
        return rest
