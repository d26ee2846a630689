"""From single durations to one figure with its noise.

A run is as fast as the mean of what it does, rare slow steps included, while a median forgives the
moments in which the machine was busy elsewhere. So durations are averaged in blocks, and the figure
is the median of the blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = Sequence[float] | NDArray[np.float64]

NUM_BLOCKS = 16
FEWEST_BLOCKS = 4
"""Fewer say nothing about noise."""
STABLE_NOISE = 0.03


class Figure(NamedTuple):
    """Seconds of one piece of work."""

    median_s: float
    noise: float
    """Half of the interquartile range of the blocks, over the median."""
    num_blocks: int

    @property
    def is_stable(self) -> bool:
        """The median itself is known well enough: its standard error is small."""
        if self.num_blocks < FEWEST_BLOCKS:
            return False
        # For normal noise the range is 1.35 deviations, and a median's error 1.25 of a mean's.
        error = 1.25 * 2 * self.noise / 1.35 / math.sqrt(self.num_blocks)
        return error < STABLE_NOISE


def figure_of(durations_s: Floats, per_piece: int, is_waiting: bool = False) -> Figure:
    """The figure for `per_piece` durations in a row. Blocks hold whole pieces where there are
    enough of them; else the piece is scaled up from what was seen.

    is_waiting: the work sleeps now and then. Then the mean of all is the figure: most blocks may
    hold no sleep at all, and their median would leave out what takes most of the time."""
    values = np.asarray(durations_s, np.float64)
    block = _block_length(len(values), per_piece)
    num_blocks = len(values) // block
    means = values[len(values) - num_blocks * block :].reshape(num_blocks, block).mean(axis=1)
    low, median, high = np.percentile(means, (25, 50, 75))
    if is_waiting:
        median = values.mean()
    noise = (high - low) / 2 / median if median > 0 else 0.0
    return Figure(float(median) * per_piece, float(noise), num_blocks)


def _block_length(count: int, per_piece: int) -> int:
    num_pieces = count // per_piece
    if num_pieces >= FEWEST_BLOCKS:
        return max(1, num_pieces // NUM_BLOCKS) * per_piece
    return max(1, count // FEWEST_BLOCKS)


def unevenness(durations_s: Floats) -> float:
    """How long one in a hundred takes, over the median."""
    if not len(durations_s):
        return 1.0
    median, late = np.percentile(durations_s, (50, 99))
    return float(late / median) if median > 0 else 1.0
