"""A store: what is kept, which items are taken, which is given up, in one protocol.

store.put(slot, stamp)        # index bookkeeping only: the bytes stay where they are
batch = store.take(version)
... the learner uses batch ...
store.finish(batch)           # slots that are free again go back to the receiver
"""

from __future__ import annotations

from typing import Any, Protocol

from tianji.buffer.lag import LagGauge
from tianji.types import Batch, Episode, Stamp


class Store(Protocol):
    """Holds slots that arrived until their items are used up or pushed out."""

    def put(self, slot: int, stamp: Stamp) -> int:
        """Keep an unroll; returns how many items that is."""
        ...

    def num_held(self) -> int:
        """Unrolls kept now."""
        ...

    def take(self, version: int) -> Batch: ...

    def finish(self, batch: Batch) -> int:
        """The batch has been used; its slots may be given up. Returns how many environment steps
        reached a gradient for the first time with it."""
        ...

    def metrics(self) -> dict[str, float]:
        """Figures about what was taken since the last call (reuse, age)."""
        ...

    def state(self) -> dict[str, Any]:
        """For the checkpoint: what is held (with the bytes, where worth it), random state."""
        ...

    def load_state(self, state: dict[str, Any]) -> None: ...


class Progress(Protocol):
    """Counts what has entered the store."""

    def add(self, episodes: list[Episode], env_steps: int) -> None: ...


class BufferRole(Protocol):
    """What the learner's side sees of a buffer: of unrolls (Buffer) or of gradients (Gathering)."""

    lag: LagGauge
    items_put: int
    """Items put, warm-up not counted: what items_taken stands in the serial ratio to."""
    items_taken: int

    def tick(self) -> bool: ...

    def take(self) -> Batch | None: ...

    def finish(self, batch: Batch, version: int) -> int: ...

    def continue_at(self, version: int) -> None:
        """The learner goes on at this version, after a resume."""
        ...

    @property
    def due_ns(self) -> int:
        """When there is something to do although nothing arrives; 0: never."""
        ...

    @property
    def discarded(self) -> int:
        """Items given up."""
        ...

    def news(self) -> list[str]:
        """What a person should know now, each thing once."""
        ...

    def metrics(self) -> dict[str, float]: ...

    def record(self) -> dict[str, Any]:
        """More for the record of the run."""
        ...

    def state(self) -> dict[str, Any]: ...

    def load_state(self, state: dict[str, Any]) -> None: ...
