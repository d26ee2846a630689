"""Cards: how ranks find each other, on one host or on several.

    cards = Cards(rank, board, readers, start)
    name = cards.agree()                      # all ranks are there now
    cards.put(name, key, value)               # what the library wants the others to know
    cards.get(name, key, timeout_s)

Each rank posts its card on a board of its own, and reads the cards of all others. On other hosts
the boards are copies, which the head of the run brings up to date. A card says how often its rank
has started and which starts of the others it sees, so that a rank which has died and started again
is not taken for its predecessor.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tianji.channels.board import ShmBoardReader, ShmBoardWriter
from tianji.channels.interface import BoardReader, BoardWriter, Bytes
from tianji.errors import ReduceBroken

SHORTEST_NAP_S, LONGEST_NAP_S = 0.001, 0.1
"""Boards have no wait that sleeps: a rank looks, less and less often."""
CARD_BYTES, BYTES_PER_RANK = 4096, 512
"""The library wants to tell each other rank an address of some 150 bytes, as hexadecimal digits."""


class Card(NamedTuple):
    """What a rank tells all others.

    >>> Card(start=7, sees="7-3", values={"7-3/0/0": "0200..."})
    """

    start: int
    """The number of its first post: higher after every start."""
    sees: str = ""
    """The starts of all ranks, as it sees them: the name of a group; "" while one is missing."""
    values: dict[str, str] = {}
    """What the library wants to be known, by key."""


class Cards:
    """One rank's view of all cards."""

    def __init__(
        self, rank: int, board: BoardWriter, readers: Sequence[BoardReader], start: int
    ) -> None:
        """readers: the boards of all ranks. start: higher than every post that is on its board."""
        self.rank = rank
        self.num_ranks = len(readers)
        self._board = board
        self._readers = readers
        self._next_post = start
        self._mine = Card(start)
        self._known: dict[int, Card] = {}
        self._read = [-1] * len(readers)

    def _post(self, card: Card) -> None:
        self._mine = card
        words = json.dumps(card).encode()

        def write(payload: Bytes) -> None:
            assert len(words) <= len(payload), "a card has room for the addresses of all ranks"
            payload[:] = 0
            payload.data[: len(words)] = words

        self._board.post(self._next_post, write)
        self._next_post += 1

    def _look(self) -> list[Card | None]:
        """Return the cards of all ranks as they are now."""
        for rank, reader in enumerate(self._readers):
            if rank != self.rank and reader.version() > self._read[rank]:
                self._known[rank] = self._read_card(rank, reader)
        self._known[self.rank] = self._mine
        return [self._known.get(rank) for rank in range(self.num_ranks)]

    def _read_card(self, rank: int, reader: BoardReader) -> Card:
        copies: list[bytes] = []
        self._read[rank] = reader.latest(lambda payload: copies.append(payload.tobytes()))
        return Card(*json.loads(copies[-1].rstrip(b"\0")))

    def agree(self, show_life: Callable[[], None] = lambda: None) -> str:
        """Wait for all ranks; return a name for the group of them. It was never used before.

        There is no time limit: those who start the ranks know whether one is still coming.
        show_life: called while this waits."""
        self._post(Card(self._mine.start))
        nap = Nap()
        while True:
            cards = [card for card in self._look() if card is not None]
            if len(cards) == self.num_ranks:
                name = "-".join(str(card.start) for card in cards)
                if name != self._mine.sees:
                    self._post(Card(self._mine.start, name))
                elif all(card.sees == name for card in cards):
                    return name
            nap.take()
            show_life()

    def has_left(self, name: str) -> bool:
        """Return whether a rank of this group has started again: it will not come any more."""
        starts = zip(name.split("-"), self._look(), strict=True)
        return any(card is not None and str(card.start) != start for start, card in starts)

    def put(self, name: str, key: str, value: bytes) -> None:
        """Let the others know a value."""
        values = {**self._mine.values, f"{name}/{key}": value.hex()}
        self._post(Card(self._mine.start, self._mine.sees, values))

    def has(self, name: str, keys: Sequence[str]) -> bool:
        """Return whether all of these values are there."""
        return all(self._find(name, key) is not None for key in keys)

    def get(self, name: str, key: str, timeout_s: float) -> bytes:
        """Return a value that a rank has put, or will put."""
        until_s, nap = time.monotonic() + timeout_s, Nap()
        while (value := self._find(name, key)) is None:
            if self.has_left(name):
                raise ReduceBroken("A learner has started again while the others were connecting.")
            if time.monotonic() > until_s:
                raise TimeoutError(f"a learner has not given its address for {timeout_s:g} s")
            nap.take()
        return bytes.fromhex(value)

    def _find(self, name: str, key: str) -> str | None:
        found = (card.values.get(f"{name}/{key}") for card in self._look() if card is not None)
        return next((value for value in found if value is not None), None)


class Nap:
    """Sleeps longer each time."""

    def __init__(self, sleep: Callable[[float], None] = time.sleep) -> None:
        self._next_s = SHORTEST_NAP_S
        self._sleep = sleep

    def take(self) -> None:
        self._sleep(self._next_s)
        self._next_s = min(LONGEST_NAP_S, 1.5 * self._next_s)


def shared_cards(rank: int, fds: Sequence[int]) -> Cards:
    """Return the cards on boards in shared memory. fds: of the boards of all ranks."""
    size = CARD_BYTES + BYTES_PER_RANK * len(fds)
    board = ShmBoardWriter(fds[rank], size, "addresses")
    readers = [ShmBoardReader(fd) for fd in fds]
    return Cards(rank, board, readers, board.version() + 1)
