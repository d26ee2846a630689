"""Contributions: every actor's sum of gradients on a board of its own.

An actor posts its sum after each gradient, so the learner finds it there whenever the round is
closed: nobody is asked to hand over, a slow actor is not waited for, and what a dead one had done
is not lost. That costs one copy in memory per gradient, and one per version and actor.

    payload: version, number of gradients (int64 each), then their sum (float32)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tianji.channels.interface import BoardReader, BoardWriter, Bytes
from tianji.types import Array

_HEADER_BYTES = 16


def contribution_bytes(num_parameters: int) -> int:
    return _HEADER_BYTES + 4 * num_parameters


class Contribution(NamedTuple):
    """The version and the count of the gradients in an actor's sum."""

    version: int
    num_gradients: int


class ContributionWriter:
    """An actor's end."""

    def __init__(self, writer: BoardWriter, reader: BoardReader) -> None:
        """reader: of the same board, for what an actor before this one has left."""
        self._writer = writer
        self._reader = reader
        self._posts = reader.version() + 1
        """Number of posts so far. The board numbers posts by it; several may be of one version."""

    def post(self, contribution: Contribution, sum_P: Array) -> None:
        def write(payload: Bytes) -> None:
            payload[:_HEADER_BYTES].view(np.int64)[:] = list(contribution)
            payload[_HEADER_BYTES:].view(np.float32)[:] = sum_P

        self._writer.post(self._posts, write)
        self._posts += 1

    def left(self, sum_P: Array) -> Contribution | None:
        """Return what was posted last, also by an actor that died; None before the first."""
        return _read(self._reader, sum_P)


class ContributionReader:
    """The learner's end of all boards, by actor."""

    def __init__(self, readers: Sequence[BoardReader]) -> None:
        self._readers = readers

    def read(self, actor: int, sum_P: Array) -> Contribution | None:
        """Copy an actor's latest sum; None before its first."""
        return _read(self._readers[actor], sum_P)


def _read(reader: BoardReader, sum_P: Array) -> Contribution | None:
    if reader.version() < 0:
        return None
    found = [Contribution(-1, 0)]

    def read(payload: Bytes) -> None:
        version, count = payload[:_HEADER_BYTES].view(np.int64).tolist()
        found[0] = Contribution(version, count)
        sum_P[:] = payload[_HEADER_BYTES:].view(np.float32)

    reader.latest(read)
    return found[0]
