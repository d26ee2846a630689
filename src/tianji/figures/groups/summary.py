"""The runs of groups in numbers: medians and ranges by the number of groups."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence

from tianji.figures.files import Data, Point
from tianji.figures.groups.runs import COMBINES, PRESETS

PPO, DQN = PRESETS


def points_of(data: Data, preset: str) -> list[Point]:
    return [point for point in data["points"] if point["preset"] == preset]


def combines_of(points: Sequence[Point]) -> list[str]:
    known = {point["combine"] for point in points}
    return [name for name in COMBINES if name in known]


def first_combine(points: Sequence[Point]) -> str:
    return combines_of(points)[0]


def median(values: Sequence[float]) -> float:
    return float(statistics.median(values))


def rate_of(name: str, scale: float, point: Point) -> float:
    return float(point["rates"][name]) / scale


Spread = dict[int, tuple[float, float, float]]
"""Lowest, middle and highest value by number of groups."""


def by_groups(
    points: Sequence[Point], combine: str, value: Callable[[Point], float | None]
) -> Spread:
    """Return the values of one way to combine; one group, which combines nothing, is of all."""
    found: Spread = {}
    for count in sorted({point["groups"] for point in points}):
        some = [
            p for p in points if p["groups"] == count and (count == 1 or p["combine"] == combine)
        ]
        values = [v for v in map(value, some) if v is not None]
        if 2 * len(values) > len(some):  # else the median is "never"
            worst = [math.inf] * (len(some) - len(values))
            found[count] = (min(values), median([*values, *worst]), max(values))
    return found


def simulated_of(data: Data, preset: str, combine: str) -> list[Point]:
    """Return the simulated rows of one way to combine, from one machine to the most."""
    kind = (preset, combine)
    rows = [row for row in data["simulated"] if (row["preset"], row["combine"]) == kind]
    return sorted(rows, key=lambda row: int(row["nodes"]))
