"""What a gateway refuses, and how often it had to."""

from __future__ import annotations

from collections import Counter
from enum import Enum


class Refusal(Enum):
    """Reasons to refuse a connection or a message."""

    STRANGER = "it did not prove that it has the keys of this run"
    GARBAGE = "what it sent does not follow the protocol"
    OVERSIZED = "a message is larger than its channel allows"
    REPLAYED = "a message had arrived before"
    SILENT = "it did not finish its greeting in time"
    MISWIRED = "it was started with another plan: the channels of the two ends differ"
    CROWD = "too many connections are waiting to be greeted"


class Refused(Exception):
    """Ends one connection, never the link or the run."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.value)
        self.refusal = refusal


class Refusals:
    """Counts for people to see; nothing is decided by them."""

    def __init__(self) -> None:
        self.counts: Counter[Refusal] = Counter()

    def note(self, refusal: Refusal) -> None:
        self.counts[refusal] += 1

    @property
    def total(self) -> int:
        return self.counts.total()
