"""The exact Mann-Whitney test, one-sided, ties included.

The statistic is the rank sum of the first group among all values, ties sharing their mean rank.
Its distribution under "both groups are alike" is counted exactly: over all ways to choose which
of the pooled values form the first group.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import numpy as np


def doubled_ranks(values: Sequence[float]) -> list[int]:
    """Twice the ranks, so that the mean ranks of ties are integers too."""
    array = np.asarray(values)
    below = (array[None, :] < array[:, None]).sum(1)
    equal = (array[None, :] == array[:, None]).sum(1)
    return [int(2 * b + e + 1) for b, e in zip(below, equal, strict=True)]


def probability_this_low(first: Sequence[float], second: Sequence[float]) -> float:
    """How likely the first group ranks this low or lower when the two are alike (p-value of
    "the first is worse").

    >>> probability_this_low([1, 2, 3], [4, 5, 6])
    0.05
    """
    ranks = doubled_ranks([*first, *second])
    observed, size = sum(ranks[: len(first)]), len(first)
    # ways[k][s]: choices of k values so far whose doubled ranks sum to s
    ways = [[0] * (sum(ranks) + 1) for _ in range(size + 1)]
    ways[0][0] = 1
    for rank in ranks:
        for k in range(size, 0, -1):
            row, before = ways[k], ways[k - 1]
            for total in range(len(row) - 1, rank - 1, -1):
                row[total] += before[total - rank]
    return sum(ways[size][: observed + 1]) / comb(len(ranks), size)


def share_above(first: Sequence[float], second: Sequence[float]) -> float:
    """How often a value of the first group is above one of the second; ties count half."""
    a, b = np.asarray(first)[:, None], np.asarray(second)[None, :]
    return float(((a > b) + 0.5 * (a == b)).mean())
