"""The data of a panel: the curves of its runs, and how the methods compare."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from tianji.figures.gathering.grid import Grid, Runs, length_s, on_clock, run_of, work_in
from tianji.figures.gathering.panels import Panel
from tianji.types import Array

Curve: TypeAlias = Mapping[str, Any]  # `seed`, and lists: `seconds`, `rounds`, `return`
# The 20 %, 50 % and 80 % quantiles over the seeds; None: never.
Band: TypeAlias = tuple[float | None, float | None, float | None]
QUANTILES = (0.2, 0.5, 0.8)
_SHARE = 0.8
_PLACES = 200
_POINTS = 60


def panel_data(grid: Grid, panel: Panel, runs: Runs) -> dict[str, Any]:
    """Return everything that is drawn and written about a panel."""
    curves: dict[str, list[Curve]] = {}
    tuned: dict[str, dict[str, Any]] = {}
    for method in panel.methods:
        choice = grid.choose(panel, method, runs)
        assert choice is not None, f"{panel.name}, {method}: not everything was tried"
        scores, work = grid.scores(panel, method, runs), work_in(panel, method, choice.m)
        tuned[method] = {
            "chosen": choice._asdict(),
            "tried": [{**tried._asdict(), "score": score} for tried, score in scores.items()],
            "rounds": len(work.finish_s),
            "gradients": work.gradients,
            "discarded": work.discarded,
        }
        curves[method] = [
            {"seed": seed, **on_clock(panel, method, choice.m, run["curve"])}
            for seed in grid.seeds
            if (run := run_of(grid.trial(panel, method, choice, seed), runs)) is not None
        ]
    return {
        "env": panel.task.env,
        "is_twin": panel.task.is_twin,
        "horizon": panel.task.horizon,
        "law": panel.law.label,
        "num_actors": panel.num_actors,
        "num_parameters": panel.task.num_parameters,
        "length_s": round(length_s(panel), 3),
        "methods": tuned,
        **compare(curves, length_s(panel)),
        "curves": {method: [thinned(c) for c in found] for method, found in curves.items()},
    }


def thinned(curve: Curve) -> dict[str, Any]:
    """Return a curve with no more points than a picture can show, its ends included."""
    length = len(curve["rounds"])
    kept = np.unique(np.linspace(0, length - 1, min(length, _POINTS)).round()).astype(int).tolist()
    return {
        name: [values[index] for index in kept] if isinstance(values, list) else values
        for name, values in curve.items()
    }


def compare(curves: Mapping[str, Sequence[Curve]], until_s: float) -> dict[str, Any]:
    """Compare methods: their returns at the end, and their times to a return that all reach.

    Times are divided by the first method's time, seed by seed.
    """
    ends = {method: _end(found, "return", until_s) for method, found in curves.items()}
    tasks = sorted(name for name in next(iter(curves.values()))[0] if name.startswith("task_"))
    target = common_return(curves, until_s)
    first, *others = curves
    reached = {
        method: {c["seed"]: time_to(c, target) for c in found} for method, found in curves.items()
    }
    ratios = {other: band(time_ratios(reached[other], reached[first])) for other in others}
    by_task = {
        method: [_end(found, task, until_s) for task in tasks] for method, found in curves.items()
    }
    return {
        "ends": ends,
        "ends_by_task": by_task,
        "target": target,
        "times_to_target": ratios,
        "reached_s": reached,
    }


def _end(curves: Sequence[Curve], value: str, until_s: float) -> Band:
    return band([float(np.interp(until_s, c["seconds"], c[value])) for c in curves])


def common_return(curves: Mapping[str, Sequence[Curve]], until_s: float) -> float:
    """Return a value that the median of every method reaches.

    It is most of the way from the common start to the best median of the weakest method.
    """
    at = np.linspace(0.0, until_s, _PLACES)
    middles = [quantiles(found, "seconds", at)[1] for found in curves.values()]
    start = float(np.median([middle[0] for middle in middles]))
    least = min(float(middle.max()) for middle in middles)
    return round(start + _SHARE * (least - start), 3)


def time_to(curve: Curve, target: float) -> float | None:
    """Return when a curve first reaches a return; None: never."""
    for second, value in zip(curve["seconds"], curve["return"], strict=True):
        if value >= target:
            return float(second)
    return None


def time_ratios(
    others: Mapping[int, float | None], firsts: Mapping[int, float | None]
) -> list[float | None]:
    """Divide times seed by seed.

    A time that was never reached is infinite: the ratio is None (infinite) if only the other never
    got there, 0 if only the first did not, and left out if neither did.
    """
    pairs = [(others[seed], firsts[seed]) for seed in others if seed in firsts]
    return [
        0.0 if first is None else None if other is None else other / first
        for other, first in pairs
        if not (other is None and first is None)
    ]


def band(values: Sequence[float | None]) -> Band:
    """Return the quantiles; None counts as infinite."""
    if not values:
        return None, None, None
    known = sorted(math.inf if value is None else value for value in values)
    low, middle, high = (_quantile(known, share) for share in QUANTILES)
    return low, middle, high


def _quantile(known: Sequence[float], share: float) -> float | None:
    """Interpolate between neighbours; None if one of them is infinite."""
    place = share * (len(known) - 1)
    below, rest = int(place), place - int(place)
    value = known[below]
    if rest > 1e-9:
        value = value * (1 - rest) + known[below + 1] * rest
    return None if math.isinf(value) else round(value, 3)


def quantiles(curves: Sequence[Curve], along: str, at: Array, value: str = "return") -> Array:
    """Return the 20 %, 50 % and 80 % quantiles of all curves at these places."""
    values: Array = np.stack([np.interp(at, curve[along], curve[value]) for curve in curves])
    found: Array = np.quantile(values, QUANTILES, axis=0)
    return found
