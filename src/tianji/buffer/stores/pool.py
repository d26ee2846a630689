"""The pool store: a batch is drawn at random from the unrolls of the newest batches.

As many unrolls are taken as are put, so that an unroll is used once on average; some are used
again and some never. Larger pools give older batches: the staleness P = batch / buffer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from tianji.buffer.interface import Store
from tianji.buffer.stores.age import AgeGauge
from tianji.buffer.stores.queue import lay_side_by_side
from tianji.channels.interface import Receiver
from tianji.types import Batch, Stamp


class Pool(Store):
    """Keeps the newest `capacity` unrolls; a batch is `num_taken` different ones of them."""

    def __init__(
        self,
        receiver: Receiver,
        env_axes: Mapping[str, int | None],
        capacity: int,
        num_taken: int,
        seed: int,
    ) -> None:
        """env_axes: where each field of an unroll has its environments; None where it has none."""
        self._receiver = receiver
        self._env_axes = env_axes
        self._capacity = capacity
        self._num_taken = num_taken
        self._rng = np.random.default_rng(seed)
        self._held: deque[tuple[int, Stamp]] = deque()
        self._unused: set[int] = set()
        """Slots whose unroll no batch has had yet."""
        self._age = AgeGauge()

    def put(self, slot: int, stamp: Stamp) -> int:
        if len(self._held) == self._capacity:
            oldest, _ = self._held.popleft()
            self._unused.discard(oldest)
            self._receiver.release(oldest)
        self._held.append((slot, stamp))
        self._unused.add(slot)
        return 1

    def num_held(self) -> int:
        return len(self._held)

    def take(self, version: int) -> Batch:
        drawn = self._rng.choice(len(self._held), self._num_taken, replace=False)
        taken = [self._held[index] for index in np.sort(drawn).tolist()]
        unique_steps = sum(stamp.env_steps for slot, stamp in taken if slot in self._unused)
        self._unused.difference_update(slot for slot, _ in taken)
        stamps = tuple(stamp for _, stamp in taken)
        self._age.add(sum(version - stamp.oldest_version for stamp in stamps), len(stamps))
        return Batch(
            lay_side_by_side(self._receiver, [slot for slot, _ in taken], self._env_axes),
            stamps,
            num_items=len(taken),
            num_steps=sum(stamp.env_steps for stamp in stamps),
            unique_steps=unique_steps,
        )

    def metrics(self) -> dict[str, float]:
        """Return the mean age of the unrolls used, in versions, and the share of slots in use."""
        return {"age_versions": self._age.read(), "fill": len(self._held) / self._capacity}

    def state(self, is_last: bool = False) -> dict[str, Any]:
        """Return the state of the draws: after a resume the pool fills again in a few versions."""
        return {"rng": self._rng.bit_generator.state}

    def load_state(self, state: dict[str, Any]) -> None:
        self._rng.bit_generator.state = state["rng"]
