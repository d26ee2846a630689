"""The runs of groups in numbers: medians and ranges by the number of groups."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence

from tianji.figures.files import Data, Point
from tianji.figures.groups.runs import COMBINES, PRESETS

PPO, DQN = PRESETS
RATES = ("received", "trained")


def points_of(data: Data, preset: str) -> list[Point]:
    return [point for point in data["points"] if point["preset"] == preset]


def rated_of(data: Data, preset: str) -> list[Point]:
    """Return the points that have rates. Those of the first turns also counted the end of each run,
    so only their curves and times were kept."""
    return [point for point in points_of(data, preset) if "rates" in point]


def timed_of(data: Data, preset: str) -> list[Point]:
    """Return the points of the longest runs: shorter ones end before slow ones reach the target."""
    points = points_of(data, preset)
    longest = max(point["seconds"] for point in points)
    return [point for point in points if point["seconds"] == longest]


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
    """Return the simulated rows of one way to combine, from one machine to the most. Rates are
    medians over the turns."""
    kind = (preset, combine)
    rows = [row for row in data["simulated"] if (row["preset"], row["combine"]) == kind]
    turns: dict[int, list[Point]] = {}
    for row in rows:
        turns.setdefault(int(row["nodes"]), []).append(row)
    return [_middle(turns[nodes]) for nodes in sorted(turns)]


def _middle(rows: Sequence[Point]) -> Point:
    """Return one row with the medians of the rates of all turns."""
    return {**rows[-1], **{rate: median([row[rate] for row in rows]) for rate in RATES}}
