"""Contributions: every actor's sum of gradients on a board of its own.

An actor posts its sum after each gradient, so the learner finds it there whenever the round is
closed: nobody is asked to hand over, a slow actor is not waited for, and what a dead one had done
is not lost. That costs one copy in memory per gradient, and one per version and actor.

    payload: version, number of gradients (int64 each), then their sum (float32)

The sums of actors on another host are added up there, and cross as one. The learner asks for them
on a board, and the answer comes on another one with the same number:

    question: version (int64), then a byte for each actor of that host: 1 if its sum is wanted
    answer:   number of gradients of each actor of that host (int64), then the total (float64)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from tianji.channels.interface import BoardReader, BoardWriter, Bytes
from tianji.types import Array

_HEADER_BYTES = 16
Weigh = Callable[[int], tuple[float, float]]
"""Returns the factor for a sum of so many gradients, and its weight in the aggregate."""


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

    @property
    def num_actors(self) -> int:
        return len(self._readers)

    def num_parameters(self) -> int:
        """Return the length of a sum; 0 before the first one was posted."""
        sizes = [0]
        for reader in self._readers:
            if reader.version() >= 0:
                reader.latest(lambda payload: sizes.append(len(payload) - _HEADER_BYTES))
                break
        return sizes[-1] // 4

    def read(self, actor: int, sum_P: Array) -> Contribution | None:
        """Copy an actor's latest sum; None before its first."""
        return _read(self._readers[actor], sum_P)


class WeighedTotal:
    """Adds up the sums of one version, each times its factor, wherever they lie. In double
    precision, the order in which sums are added does not matter."""

    def __init__(
        self, contributions: ContributionReader, weigh: Weigh, num_parameters: int
    ) -> None:
        self._contributions = contributions
        self._weigh = weigh
        self._one_P = np.empty(num_parameters, np.float32)
        self.total_P: Array = np.zeros(num_parameters)

    def add_up(self, version: int, actors: Iterable[int]) -> list[int]:
        """Make total_P the total of these actors; return the number of gradients of each actor in
        it, 0 for those without a sum of this version."""
        counts = [0] * self._contributions.num_actors
        self.total_P[:] = 0.0
        for actor in sorted(actors):
            found = self._contributions.read(actor, self._one_P)
            if found is None or found.version != version:
                continue
            factor, _ = self._weigh(found.num_gradients)
            self.total_P += factor * self._one_P.astype(np.float64)
            counts[actor] = found.num_gradients
        return counts


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


def wanted_bytes(num_actors: int) -> int:
    return 8 + num_actors


def answer_bytes(num_actors: int, num_parameters: int) -> int:
    return 8 * (num_actors + num_parameters)


class Wanted(NamedTuple):
    """A question for the total of some actors of one host."""

    number: int
    version: int
    actors: list[int]
    """Places of the wanted actors among those of their host."""


def read_wanted(reader: BoardReader) -> Wanted:
    """Read the latest question; there must be one."""
    found = [(0, b"")]

    def read(payload: Bytes) -> None:
        found[0] = int(payload[:8].view(np.int64)[0]), payload[8:].tobytes()

    number = reader.latest(read)
    version, wanted = found[0]
    return Wanted(number, version, [place for place, is_wanted in enumerate(wanted) if is_wanted])


def answer_of(counts: Sequence[int], total_P: Array) -> memoryview:
    """Return the bytes of an answer, in memory of their own."""
    answer = bytearray(answer_bytes(len(counts), len(total_P)))
    np.frombuffer(answer, np.int64, len(counts))[:] = counts
    np.frombuffer(answer, np.float64, offset=8 * len(counts))[:] = total_P
    return memoryview(answer)


class HostSums:
    """The learner's end of the sums of one other host."""

    def __init__(
        self, actors: Sequence[int], writer: BoardWriter, asked: BoardReader, answers: BoardReader
    ) -> None:
        """actors: those of the host. asked: reads the board that `writer` writes, for the questions
        of a learner before this one."""
        self.actors = actors
        self._writer = writer
        self._number = asked.version()
        self._answers = answers

    def ask(self, version: int, actors: Iterable[int]) -> None:
        """Ask for the total of these actors; an earlier question is void."""
        wanted = set(actors)

        def write(payload: Bytes) -> None:
            payload[:8].view(np.int64)[:] = version
            payload[8:] = [actor in wanted for actor in self.actors]

        self._number += 1
        self._writer.post(self._number, write)

    def has_answered(self) -> bool:
        return self._answers.version() == self._number

    def add_to(self, total_P: Array) -> list[int]:
        """Add the answer to a total; return the number of gradients of each actor of the host."""
        answer = [b""]

        def read(payload: Bytes) -> None:
            answer[0] = payload.tobytes()

        self._answers.latest(read)
        num_actors = len(self.actors)
        total_P += np.frombuffer(answer[0], np.float64, offset=8 * num_actors)
        counts: list[int] = np.frombuffer(answer[0], np.int64, num_actors).tolist()
        return counts
