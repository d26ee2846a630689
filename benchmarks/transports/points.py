"""What is measured: one point of the virtual communication experiment, and the three sweeps.

(a) message sizes, one actor, as fast as it goes;  (b) numbers of actors, with a receiver that keeps
what it is given and with one that copies it;  (c) actors that need time for every message.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

KB, MB = 1024, 1024 * 1024
SIZES = (4 * KB, 16 * KB, 64 * KB, 256 * KB, 512 * KB, 2 * MB, 8 * MB)
ACTORS = (1, 2, 4)
MIDDLE = 512 * KB
KEPT_BYTES = 64 * MB
MIN_KEPT, MAX_KEPT = 8, 1024
MESSAGES = 10_000


@dataclass(frozen=True)
class Point:
    """N senders, each sending messages of one size, each after its sample time, to one receiver."""

    size_bytes: int
    actors: int = 1
    sample_time_s: float = 0.0
    messages: int = MESSAGES
    is_copying: bool = False
    is_check: bool = False  # compare every byte; the times then mean nothing

    @property
    def num_kept(self) -> int:
        """How many messages the receiver keeps at a time."""
        return max(MIN_KEPT, min(MAX_KEPT, KEPT_BYTES // self.size_bytes))

    def share(self, actor: int) -> int:
        """How many of the messages this actor sends; the first ones send the remainder."""
        return self.messages // self.actors + (actor < self.messages % self.actors)

    @property
    def warm_up(self) -> Point:
        """What is sent before the clock starts, so that memory has been touched and connections
        stand: a tenth of the messages, or as many as are kept if that is less."""
        messages = max(self.actors, min(self.num_kept, self.messages // 10))
        return replace(self, messages=messages, sample_time_s=0.0)

    def with_messages(self, messages: int) -> Point:
        return replace(self, messages=messages)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Point:
        return Point(**json.loads(text))

    @property
    def label(self) -> str:
        size = f"{self.size_bytes // KB}K" if self.size_bytes < MB else f"{self.size_bytes // MB}M"
        pause = f", {self.sample_time_s * 1e3:g} ms" if self.sample_time_s else ""
        return f"{size} x {self.actors}{pause}{', copying' if self.is_copying else ''}"


def points_of(part: str) -> list[Point]:
    """The points of part a, b or c, all with the full number of messages."""
    if part == "a":
        return [Point(size) for size in SIZES]
    if part == "b":
        return [
            Point(MIDDLE, actors, is_copying=copying)
            for copying in (False, True)
            for actors in ACTORS
        ]
    return [Point(MIDDLE, actors, pause_s) for pause_s in (1e-3, 1e-2) for actors in ACTORS]


def quick_points_of(part: str) -> list[Point]:
    """A few small points, to see that everything works."""
    chosen = {
        "a": [Point(4 * KB)],
        "b": [Point(MIDDLE, 2, is_copying=True)],
        "c": [Point(MIDDLE, 2, 1e-3)],
    }
    return [point.with_messages(200) for point in chosen[part]]


def per_10k_s(collection_s: float, messages: int) -> float:
    """Seconds that 10,000 messages would have taken at the same rate."""
    return collection_s * MESSAGES / messages
