"""Fair turns on a machine whose speed changes."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def alternate(contestants: Sequence[T], seeds: Iterable[int]) -> Iterator[tuple[T, int]]:
    """Yield every contestant once per seed, in another order each time, so that whatever else the
    machine does meanwhile, or a neighbour leaves behind, meets all alike."""
    for seed in seeds:
        order = list(contestants)
        random.Random(seed).shuffle(order)
        for contestant in order:
            yield contestant, seed
