"""Draws that stay for several steps: exploration gets further with them than with new ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tianji.types import Array


def held(draw: Callable[[int], Array], num_rows: int, hold: int) -> Array:
    """Return `num_rows` rows of draws of which each stays for `hold` rows; draw(n) gives n rows.

    >>> held(lambda count: np.arange(count), 5, 2).tolist()
    [0, 0, 1, 1, 2]
    """
    if hold == 1:
        return draw(num_rows)
    return np.repeat(draw(-(-num_rows // hold)), hold, axis=0)[:num_rows]
