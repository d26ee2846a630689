"""One setting of the virtual communication experiment, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass

from tianji.bench.message import REGION_BYTES, make_layout
from tianji.config.machine import memory_available_bytes
from tianji.errors import UsageError

MAX_BYTES = 1 << 30
MAX_ACTORS = 256
MAX_SAMPLE_TIME_S = 60.0
MIN_WINDOW, MAX_WINDOW = 4, 256
WINDOW_BYTES = 8 << 20
MIN_KEPT, MAX_KEPT = 8, 1024


@dataclass(frozen=True, slots=True)
class Point:
    """What is asked.

    is_copying: the receiver copies every message into a store of its own, instead of keeping its
        slot.
    is_checking: messages differ and every byte is compared; such a run says nothing about speed.
    """

    size_bytes: int
    num_actors: int = 1
    sample_time_s: float = 0.0
    num_messages: int = 10_000
    is_copying: bool = False
    is_checking: bool = False

    def check(self) -> None:
        """Find what cannot be run before any process starts."""
        if not 1 <= self.size_bytes <= MAX_BYTES:
            raise UsageError(f"--size is {self.size_bytes}. It must be 1 to {MAX_BYTES} bytes.")
        if not 1 <= self.num_actors <= MAX_ACTORS:
            raise UsageError(f"--actors is {self.num_actors}. It must be 1 to {MAX_ACTORS}.")
        if not 0.0 <= self.sample_time_s <= MAX_SAMPLE_TIME_S:
            raise UsageError(
                f"--sample-time is {self.sample_time_s}. It must be 0 to {MAX_SAMPLE_TIME_S:.0f} "
                "seconds: the time in which an actor makes one message."
            )
        if self.num_messages < self.num_actors:
            raise UsageError(
                f"--messages is {self.num_messages}. It must be at least {self.num_actors}, one "
                "for every actor."
            )
        needed, free = self.num_slots * self.size_bytes, memory_available_bytes()
        if needed > free // 2:
            raise UsageError(
                f"{self.num_slots} slots x {self.size_bytes / 2**20:.1f} MiB = "
                f"{needed / 2**30:.1f} GiB, more than half of the {free / 2**30:.1f} GiB that are "
                "free. Use fewer --actors or a smaller --size."
            )

    @property
    def window(self) -> int:
        """Messages that one actor may have under way: enough that it never waits, and, but for
        very large ones, so few that they are still in a cache when they are received."""
        share_bytes = WINDOW_BYTES // self.num_actors
        return max(MIN_WINDOW, min(MAX_WINDOW, share_bytes // self.size_bytes))

    @property
    def num_kept(self) -> int:
        """Messages that the store holds; then the oldest gives way. As many as fill, with those
        under way, the region that copying is measured with; no more than 1,024, which is more than
        a queue of unrolls holds."""
        return max(MIN_KEPT, min(MAX_KEPT, self._in_region - self.window * self.num_actors))

    @property
    def num_slots(self) -> int:
        return self.num_kept + self.window * self.num_actors

    @property
    def num_warmup(self) -> int:
        """Messages sent and kept before the clock starts, so that every process and every page has
        been used: a tenth, or as many as are kept."""
        return max(self.num_actors, min(self.num_kept, self.num_messages // 10))

    @property
    def _in_region(self) -> int:
        return REGION_BYTES // make_layout(self.size_bytes).slot_bytes
