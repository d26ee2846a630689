"""CardStore: what the ranks of a group tell each other by their cards, as torch.distributed wants
it. Loaded only where the library has collectives."""

from __future__ import annotations

from datetime import timedelta

from torch.distributed.distributed_c10d import Store

from tianji.channels.peers.cards import Cards


class CardStore(Store):
    """The library sets keys of its own rank and gets those of others; it needs nothing else."""

    def __init__(self, cards: Cards, name: str, timeout_s: float) -> None:
        """name: of the group, agreed on by all of its ranks. timeout_s: for each value."""
        super().__init__()
        self._cards = cards
        self._name = name
        self._timeout_s = timeout_s

    def set(self, key: str, value: str | bytes) -> None:
        self._cards.put(self._name, key, value.encode() if isinstance(value, str) else value)

    def get(self, key: str) -> bytes:
        return self._cards.get(self._name, key, self._timeout_s)

    def check(self, keys: list[str]) -> bool:
        return self._cards.has(self._name, keys)

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        timeout_s = self._timeout_s if timeout is None else timeout.total_seconds()
        for key in keys:
            self._cards.get(self._name, key, timeout_s)
