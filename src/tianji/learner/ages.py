"""Ages: how old the newest state is that a group has of each of its peers, and whom it waits for.

    ages = Ages(peers, max_age=100, patience_s=60.0)
    ages.count(fresh, version)           # after each mix
    if ages.hold_back(fresh): ...        # before each batch; fresh: peers with an unmixed state

The age of a peer is the number of own versions since a mix with a new state of it, and changes only
in mixes. At `max_age` the group takes no batch until the peer has posted again. A peer may have
died, ended or been left out: one that posts nothing for `patience_s` is no longer waited for until
it posts again.

Peers never all wait for each other: a group that waits has posted since the last post of the peer
that it waits for, which cannot be true all around a circle. It would not have posted if ages grew
between mixes.
"""

from __future__ import annotations

import time
from collections.abc import Collection

from tianji.records import PeerAge
from tianji.types import Clock

NEVER = 0
"""The `max_age` of a group that waits for nobody."""


class Ages:
    """`count` after each mix, `hold_back` before each batch."""

    def __init__(
        self,
        peers: Collection[int],
        max_age: int = NEVER,
        patience_s: float = 0.0,
        now_ns: Clock = time.monotonic_ns,
    ) -> None:
        self._ages = dict.fromkeys(peers, 0)
        self._max_age = max_age
        self._patience_ns = int(patience_s * 1e9)
        self._now_ns = now_ns
        self._given_up: set[int] = set()
        self._mixed: dict[int, int] = {}
        """The version in work at the last mix with a new state of each peer; of a peer that has
        posted nothing yet, the version before the first mix."""
        self._since_ns: int | None = None
        """When it began to wait; None: it does not."""
        self._sum = self._count = self._highest = 0

    def count(self, fresh: Collection[int], version: int) -> None:
        """Count a mix. fresh: the peers that had a new state for it. version: the one in work. A
        version may have several mixes, and a mix may come only every few versions."""
        for peer in self._ages:
            mixed = version if peer in fresh else self._mixed.get(peer, version - 1)
            self._mixed[peer], self._ages[peer] = mixed, version - mixed
        self._given_up.difference_update(fresh)
        oldest = max(self._ages.values())
        self._sum += oldest
        self._count += 1
        self._highest = max(self._highest, oldest)

    def hold_back(self, fresh: Collection[int]) -> bool:
        """Return whether to wait for a peer now. fresh: the peers with a state not mixed yet."""
        late = self._late(fresh)
        if not late:
            self._since_ns = None
            return False
        now_ns = self._now_ns()
        if self._since_ns is None:
            self._since_ns = now_ns
        if now_ns - self._since_ns > self._patience_ns:
            self._given_up |= late
            self._since_ns = None
        return self.is_waiting

    def _late(self, fresh: Collection[int]) -> set[int]:
        if self._max_age == NEVER:
            return set()
        late = {peer for peer, age in self._ages.items() if age >= self._max_age}
        return late - self._given_up - set(fresh)

    @property
    def is_waiting(self) -> bool:
        """Return whether the last `hold_back` said to wait."""
        return self._since_ns is not None

    def record(self, waited_s: float) -> PeerAge:
        """Return the ages in all mixes of this learner, each that of the oldest peer."""
        mean = self._sum / self._count if self._count else None
        return PeerAge(mean=mean, max=self._highest, waited_s=waited_s)
