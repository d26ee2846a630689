"""Supply: slots for actors whose unrolls are tokens; they are free again as soon as they arrive.

Nothing is balanced here: how many gradients a version takes is the gather rule's to say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from tianji.buffer.presence import Presence
from tianji.channels.interface import Receiver


class Supply:
    """Owes actors slots, and grants them when both are there."""

    def __init__(self, receiver: Receiver, presence: Presence) -> None:
        self._receiver = receiver
        self._presence = presence
        self._owed: Counter[int] = Counter()
        self._granted = [0] * receiver.num_lanes
        """And not yet arrived."""
        self._rounds = [0] * receiver.num_lanes

    def give(self, actor: int, count: int = 1) -> None:
        self._owed[actor] += count

    def arrived(self, actor: int, round_number: int) -> bool:
        """Take a token's slot off what the actor holds; False where it holds none for this round.
        Its lane was declared lost then, and the round is or was made again."""
        if not self._rounds[actor] - self._granted[actor] <= round_number < self._rounds[actor]:
            return False
        self._granted[actor] -= 1
        return True

    def lost(self, actor: int) -> None:
        """The actor's lane was reset: the successor is owed what it held, for the same rounds."""
        self._owed[actor] += self._granted[actor]
        self._rounds[actor] -= self._granted[actor]
        self._granted[actor] = 0

    def gave_up(self, actor: int) -> None:
        del self._owed[actor]

    def rounds(self) -> list[int]:
        """Of each actor's next unroll: how many it has sent."""
        return [given - held for given, held in zip(self._rounds, self._granted, strict=True)]

    def load(self, rounds: Sequence[int]) -> None:
        """Before anything is granted: go on from these."""
        self._rounds = list(map(int, rounds))

    def deliver(self, idle: Collection[int] = ()) -> None:
        """idle: those who have to wait for it."""
        for actor, count in tuple(self._owed.items()):
            if actor not in self._presence.absent and actor not in idle:
                self._deliver(actor, count)

    def _deliver(self, actor: int, count: int) -> None:
        granted = self._receiver.grant(actor, self._rounds[actor], count)
        self._rounds[actor] += granted
        self._granted[actor] += granted
        self._owed[actor] -= granted
        if not self._owed[actor]:
            del self._owed[actor]
