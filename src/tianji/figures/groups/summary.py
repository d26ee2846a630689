"""The runs of groups in numbers: interquartile means and intervals by the number of groups."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence

from tianji.figures.estimates import Estimated, estimate
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
    """Return the points of the longest runs, and shorter ones of settings in which all of those
    reached the target; of the others, only quick ones would have a time. Ways to combine of which
    one seed was run are left out, if there are others."""
    points = points_of(data, preset)
    longest = max(point["seconds"] for point in points)
    short = [point for point in points if point["seconds"] < longest]
    too_short = {_setting(point) for point in short if point["time_to_target_s"] is None}
    points = [p for p in points if p["seconds"] == longest or _setting(p) not in too_short]
    seeds = {
        p["combine"]: {q["seed"] for q in points if q["combine"] == p["combine"]} for p in points
    }
    return [point for point in points if len(seeds[point["combine"]]) > 1] or points


def combines_of(points: Sequence[Point]) -> list[str]:
    known = {point["combine"] for point in points}
    return [name for name in COMBINES if name in known]


def first_combine(points: Sequence[Point]) -> str:
    return combines_of(points)[0]


def median(values: Sequence[float]) -> float:
    return float(statistics.median(values))


def rate_of(name: str, scale: float, point: Point) -> float:
    return float(point["rates"][name]) / scale


Spread = dict[int, Estimated]
"""The estimate for each number of groups."""


def by_groups(
    points: Sequence[Point], combine: str, value: Callable[[Point], float | None]
) -> Spread:
    """Return the values of one way to combine; one group, which combines nothing, is of all."""
    return {
        count: estimate(_one_for_each_seed(some, value))
        for count in sorted({point["groups"] for point in points})
        if (some := [p for p in points if p["groups"] == count and _is_of(p, combine)])
    }


def _one_for_each_seed(
    points: Sequence[Point], value: Callable[[Point], float | None]
) -> list[float]:
    """Return the mean of each seed. One group was run once for each way to combine, and these runs
    of a seed are not independent. One that never got there makes the mean of its seed never."""
    seeds: dict[int, list[float]] = {}
    for point in points:
        found = value(point)
        seeds.setdefault(point["seed"], []).append(math.inf if found is None else found)
    return [statistics.fmean(values) for values in seeds.values()]


def _is_of(point: Point, combine: str) -> bool:
    return bool(point["groups"] == 1 or point["combine"] == combine)


def _setting(point: Point) -> tuple[str, int, str]:
    """Return what runs have in common that differ by seed alone."""
    return point["preset"], point["groups"], "" if point["groups"] == 1 else point["combine"]


def fewest_seeds(points: Sequence[Point]) -> int:
    """Return the seeds of the setting that has the fewest."""
    seeds: dict[tuple[str, int, str], set[int]] = {}
    for point in points:
        seeds.setdefault(_setting(point), set()).add(point["seed"])
    return min(map(len, seeds.values()))


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
