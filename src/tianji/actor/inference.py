"""Inference: acts with a policy and knows which version of it."""

from __future__ import annotations

from collections.abc import Callable

from tianji.algorithms.interface import Acting
from tianji.channels.interface import BoardReader, Bytes


class Inference:
    """Acts in this process with the version of the policy that was read last."""

    def __init__(self, acting: Acting, board: BoardReader, read: Callable[[Bytes], None]) -> None:
        """read: copies the board's bytes into the model that `acting` uses."""
        self.begin = acting.begin
        self.act = acting.act
        self.finish = acting.finish
        self.newest = board.version
        self._board = board
        self._read = read
        self.version = -1
        """The version that acts; -1 before the first one."""

    def refresh(self) -> None:
        """Read the newest version if it is another one."""
        if self.newest() != self.version:
            self.version = self._board.latest(self._read)
