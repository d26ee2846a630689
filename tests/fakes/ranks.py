"""Several ranks in one process, each on a thread of its own, and a count of their reductions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from tianji.channels.peers.inproc import InprocTeam

LONG_S = 30.0


class CountedPeers:
    """Notes the size of every reduction of one rank."""

    def __init__(self, peers: Any) -> None:
        self._peers = peers
        self.rank, self.num_ranks = peers.rank, peers.num_ranks
        self.sizes: list[int] = []

    def add(self, values: Any) -> None:
        self.sizes.append(values.numel())
        self._peers.add(values)

    def close(self) -> None:
        self._peers.close()


def counted_ranks(num_ranks: int, timeout_s: float = LONG_S) -> list[CountedPeers]:
    team = InprocTeam(num_ranks, timeout_s)
    return [CountedPeers(team.end(rank)) for rank in range(num_ranks)]


def on_threads(programs: list[Callable[[], Any]], peers: Sequence[Any] = ()) -> list[Any]:
    """Run each on a thread; return what they returned, or raise what the first one raised. peers:
    the ends of the ranks, which an error closes, so that nobody waits."""
    found: list[Any] = [None] * len(programs)
    errors: list[BaseException] = []

    def run(index: int) -> None:
        try:
            found[index] = programs[index]()
        except BaseException as error:  # noqa: BLE001 - it is raised in the caller's thread
            errors.append(error)
            for end in peers:
                end.close()

    threads = [threading.Thread(target=run, args=[index]) for index in range(len(programs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * LONG_S)
        assert not thread.is_alive(), "a rank hangs"
    if errors:
        raise errors[0]
    return found
