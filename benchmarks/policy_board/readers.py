"""The readers of the benchmark: processes that pick up the policy, over and over, and check it."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum

import numpy as np

from tianji.bench.message import aligned_bytes
from tianji.channels.board import ShmBoardReader
from tianji.channels.interface import Bytes
from tianji.channels.memory import Segment

FORK = multiprocessing.get_context("fork")
NUM_SAMPLES = 64


class Word(IntEnum):
    """What a reader says of itself; STOP is said to it."""

    PICKED_UP = 0
    COPIES = 1
    """One more than PICKED_UP for each time that the writer lapped it."""
    MIXED = 2
    COPY_NS = 3
    """Time in `latest` altogether."""
    LAST = 4
    STOP = 5


NUM_WORDS = len(Word)


class Readers:
    """`count` processes that copy the latest policy all the time."""

    def __init__(self, fd: int, size_bytes: int, count: int, every_byte: bool) -> None:
        segment = Segment.create("readers", 8 * NUM_WORDS * count)
        self.rows = [segment.words(8 * NUM_WORDS * index, NUM_WORDS) for index in range(count)]
        self._segment = segment
        self._children = [
            FORK.Process(target=_read_on, args=(fd, size_bytes, row, every_byte), daemon=True)
            for row in self.rows
        ]
        for child in self._children:
            child.start()

    def total(self, word: Word) -> int:
        return sum(row[word] for row in self.rows)

    def wait_until_all(self, version: int, timeout_s: float = 60.0) -> None:
        """Until every reader has picked up this version or a later one."""
        end_s = time.monotonic() + timeout_s
        while min((row[Word.LAST] for row in self.rows), default=version) < version:
            if time.monotonic() > end_s:
                raise TimeoutError(f"A reader did not pick up version {version}.")
            time.sleep(0.001)

    def close(self) -> None:
        for row in self.rows:
            row[Word.STOP] = 1
        for child in self._children:
            child.join()
        self._segment.close()


@contextmanager
def reading(fd: int, size_bytes: int, count: int, every_byte: bool = False) -> Iterator[Readers]:
    readers = Readers(fd, size_bytes, count, every_byte)
    try:
        yield readers
    finally:
        readers.close()


def _read_on(fd: int, size_bytes: int, row: memoryview[int], every_byte: bool) -> None:
    reader, mine = ShmBoardReader(fd), aligned_bytes(size_bytes)
    row[Word.LAST] = -1
    copy = _counting_copy(mine, row)
    words = mine.view(np.int64)
    step = 1 if every_byte else max(1, len(words) // NUM_SAMPLES)
    while not row[Word.STOP]:
        if reader.version() < 0:
            continue
        before_ns = time.perf_counter_ns()
        version = reader.latest(copy)
        row[Word.COPY_NS] += time.perf_counter_ns() - before_ns
        is_whole = words[-1] == version and bool((words[::step] == version).all())
        row[Word.MIXED] += not is_whole
        row[Word.PICKED_UP] += 1
        row[Word.LAST] = version


def _counting_copy(mine: Bytes, row: memoryview[int]) -> Callable[[Bytes], None]:
    def copy(payload: Bytes) -> None:
        row[Word.COPIES] += 1
        np.copyto(mine, payload)

    return copy
