"""The boards between groups on different hosts: the head passes on what each group posts.

    boards.put(posts)                     # what came from another host
    posts = boards.take_new(names)        # what another host has not seen yet

Only the latest post of a group matters, so that a slow host misses some and waits for none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from tianji.channels.board import ShmBoardReader, ShmBoardWriter
from tianji.channels.interface import Bytes


class Post(NamedTuple):
    """What a group has posted on its board."""

    board: str
    version: int
    data: bytes


class PeerBoards:
    """Boards in the memory of this process and of those that it has started."""

    def __init__(self, fds: Mapping[str, int]) -> None:
        """fds: file descriptors by wire."""
        self._fds = fds
        self._readers = {name: ShmBoardReader(fd) for name, fd in fds.items()}
        self._writers: dict[str, ShmBoardWriter] = {}
        self._taken = dict.fromkeys(fds, -1)

    def put(self, posts: Iterable[Post]) -> None:
        """Post what is newer than what is there."""
        for post in posts:
            writer = self._writers.get(post.board)
            if writer is None:
                writer = ShmBoardWriter(self._fds[post.board], len(post.data), post.board)
                self._writers[post.board] = writer
            self._taken[post.board] = max(self._taken[post.board], post.version)
            if post.version > writer.version():
                writer.post(post.version, _writing(post.data))

    def leave(self, board: str) -> None:
        """Give the board up to another writer."""
        self._writers.pop(board, None)

    def take_new(self, boards: Iterable[str]) -> list[Post]:
        """Return the latest posts on these boards that were neither taken nor put before."""
        found = []
        for board in boards:
            reader = self._readers[board]
            if reader.version() > self._taken[board]:
                copies: list[bytes] = []
                self._taken[board] = reader.latest(partial(_keep, copies))
                found.append(Post(board, self._taken[board], copies[-1]))
        return found


def _keep(copies: list[bytes], payload: Bytes) -> None:
    copies.append(payload.tobytes())


def _writing(data: bytes) -> Callable[[Bytes], None]:
    def write(payload: Bytes) -> None:
        payload[:] = np.frombuffer(data, np.uint8)

    return write
