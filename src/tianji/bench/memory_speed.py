"""How fast this machine copies memory: the limit that moving data is held against."""

from __future__ import annotations

import multiprocessing
import os
import statistics
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

from tianji.bench.message import aligned_bytes

REGION_BYTES = 64 << 20
"""Copies go round in a region of this size: larger than most caches, as a store is."""
MAX_PLACES = 1 << 14
"""Messages under 4 KB fill less of it: more places would take more memory than the messages do."""
REPEATS, REPEAT_S = 3, 0.05
PATIENCE_S = 60.0


def copy_speeds(size_bytes: int) -> list[float]:
    """Bytes per second of one core copying the same payload into ever new places of a region whose
    pages were touched before; some repeats."""
    return _repeats(size_bytes, 1, REGION_BYTES)


def machine_copy_speed(size_bytes: int, num_sources: int) -> float:
    """Bytes per second of all cores at once, each copying its share of the payloads in turn into
    its share of the region. Less than the cores' sum: they share the memory."""
    cores = len(os.sched_getaffinity(0))
    fork: Any = multiprocessing.get_context("fork")
    barrier = fork.Barrier(cores)
    ends = [fork.Pipe(duplex=False) for _ in range(cores)]
    share = -(-num_sources // cores)
    workers = [
        fork.Process(target=_copy_with_others, args=(barrier, size_bytes, share, sender))
        for _, sender in ends
    ]
    for worker, (_, sender) in zip(workers, ends, strict=True):
        worker.start()
        sender.close()  # so that a worker that died is noticed
    by_core: list[list[float]] = [receiver.recv() for receiver, _ in ends]
    for worker in workers:
        worker.join()
    return statistics.median(map(sum, zip(*by_core, strict=True)))


def _copy_with_others(barrier: Any, size_bytes: int, num_sources: int, answer: Connection) -> None:
    barrier.wait(PATIENCE_S)
    region_bytes = REGION_BYTES // len(os.sched_getaffinity(0))
    answer.send(_repeats(size_bytes, num_sources, region_bytes))


def _repeats(size_bytes: int, num_sources: int, region_bytes: int) -> list[float]:
    sources = [_touched(size_bytes).data for _ in range(num_sources)]
    num_places = max(2, min(MAX_PLACES, region_bytes // size_bytes))
    region = _touched(num_places * size_bytes)
    places = [region[i * size_bytes : (i + 1) * size_bytes].data for i in range(num_places)]
    return [_one_repeat(sources, places) for _ in range(REPEATS)]


def _touched(nbytes: int) -> Any:
    memory = aligned_bytes(nbytes)
    memory[:] = 1
    return memory


def _one_repeat(sources: Sequence[memoryview], places: Sequence[memoryview]) -> float:
    copied, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < REPEAT_S:
        source = sources[copied // len(places) % len(sources)]
        for place in places:
            place[:] = source
        copied += len(places)
    return copied * sources[0].nbytes / elapsed
