"""How fast this machine copies memory: the limit that moving data is held against."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tianji.bench.message import aligned_bytes

REGION_BYTES = 64 << 20
"""Copies go round in a region of this size: larger than most caches, as a store is."""
MAX_PLACES = 1 << 14
"""Messages under 4 KB fill less of it: more places would take more memory than the messages do."""
REPEATS, REPEAT_S = 3, 0.05


def copy_speeds(size_bytes: int) -> list[float]:
    """Bytes per second of one core copying the same payload into ever new places of a region whose
    pages were touched before; some repeats."""
    source = _touched(size_bytes).data
    num_places = max(2, min(MAX_PLACES, REGION_BYTES // size_bytes))
    region = _touched(num_places * size_bytes)
    places = [region[i * size_bytes : (i + 1) * size_bytes].data for i in range(num_places)]
    return [_one_repeat(source, places) for _ in range(REPEATS)]


def _touched(nbytes: int) -> NDArray[np.uint8]:
    memory = aligned_bytes(nbytes)
    memory[:] = 1
    return memory


def _one_repeat(source: memoryview, places: Sequence[memoryview]) -> float:
    copied, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < REPEAT_S:
        for place in places:
            place[:] = source
        copied += len(places)
    return copied * source.nbytes / elapsed
