"""What one run of a comparison did, read from its folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NotRequired, TypedDict, cast

import numpy as np

from tianji.checkpoint.durable import to_plain
from tianji.comparison.bound import Bound
from tianji.display.curve import Point, to_points
from tianji.observe.account import LEAST_S
from tianji.observe.run_log import all_metrics, last_metrics
from tianji.observe.summary import read_summary
from tianji.records import (
    NO_METRICS,
    CriticalPath,
    Lag,
    Rates,
    StoppedBecause,
    Summary,
    roles_of,
)

FINISHED: tuple[StoppedBecause, ...] = ("target_reached", "max_env_steps", "max_wall")
"""Endings of runs that count. The others are run again when the comparison continues."""
MOST_POINTS = 400
"""Points of a curve that are kept in comparison.json; metrics.jsonl has all."""


class SideFigures(TypedDict):
    """The time of the actors, or of the learner, as shares of the time in which each role existed;
    means over the roles."""

    busy_share: float | None
    """None where no role has existed for a time that is worth measuring."""
    waited_share: dict[str, float]
    """The time by what was waited for; `core` overlaps with everything else."""


class _Kept(TypedDict):
    """What is taken from the summary as it is."""

    seed: int
    stopped_because: StoppedBecause
    mean_return_100: float | None
    time_to_target_s: float | None
    start_up_s: float | None
    wall_s: float
    env_steps: int
    episodes: int
    updates: int
    version: int
    rates_per_s: Rates
    lag_versions: Lag
    discarded_items: int
    restarts: int
    critical_path: CriticalPath | None
    explanation: list[str]


KEPT = tuple(_Kept.__annotations__)


class RunFigures(_Kept):
    """The raw figures of one run."""

    style: str
    run_dir: str
    gather_rule: str | None
    """How gradients are gathered; None where actors send experience."""
    steps_to_target: int | None
    greedy_return: float | None
    """Mean return of the last policy without exploration; None where none was saved."""
    actors: SideFigures
    learner: SideFigures
    bound: Bound | None
    """None where there is no profile of such a run."""
    curve: list[Point]
    """Environment steps, seconds, mean return of the last 100 episodes."""
    first_cause: NotRequired[str]


def finished_summary(run_dir: Path) -> Summary | None:
    """Return the summary of a run that came to its end; None for any other."""
    summary = read_summary(run_dir)
    return summary if summary is not None and is_finished(summary) else None


def is_finished(run: Summary | RunFigures) -> bool:
    """Return whether a run came to its end, so that it counts."""
    return run["stopped_because"] in FINISHED


def read_figures(
    style: str,
    summary: Summary,
    run_dir: Path,
    bound: Bound | None,
    greedy_return: float | None = None,
) -> RunFigures:
    """Return the figures of the run with this summary."""
    record = last_metrics(run_dir) or NO_METRICS
    points = to_points(all_metrics(run_dir))
    whole: Mapping[str, Any] = summary
    found = {key: whole[key] for key in KEPT} | {
        "style": style,
        "run_dir": run_dir,
        "gather_rule": whole["gather"]["rule"] if whole["gather"] else None,
        "steps_to_target": steps_at(whole["time_to_target_s"], points),
        "greedy_return": greedy_return,
        "actors": _side(summary, roles_of(record, "actor")),
        "learner": _side(summary, roles_of(record, "learner")),
        "bound": bound,
        "curve": points[:: 1 + len(points) // MOST_POINTS],
    }
    if "first_cause" in whole:
        found["first_cause"] = whole["first_cause"]
    return cast("RunFigures", to_plain(found))


def steps_at(time_s: float | None, points: Sequence[Point]) -> int | None:
    """Return the environment steps at a time of the run, on straight lines between its points."""
    if time_s is None or not points:
        return None
    seconds, steps = [0.0, *(p.wall_s for p in points)], [0, *(p.env_steps for p in points)]
    return round(float(np.interp(time_s, seconds, steps)))


def _side(summary: Summary, roles: Sequence[str]) -> SideFigures:
    """Return the means over the roles of one side."""
    times = {role: _existed_s(summary, role) for role in roles}
    times = {role: seconds for role, seconds in times.items() if seconds >= LEAST_S}
    if not times:
        return SideFigures(busy_share=None, waited_share={})
    waited = {role: summary["waited_s"].get(role, {}) for role in times}
    causes = dict.fromkeys(cause for of_role in waited.values() for cause in of_role)
    return SideFigures(
        busy_share=fmean(summary["busy_share"].get(role, 0.0) for role in times),
        waited_share={
            cause: fmean(waited[role].get(cause, 0.0) / times[role] for role in times)
            for cause in causes
        },
    )


def _existed_s(summary: Summary, role: str) -> float:
    """Return the time that the busy share of a role is of: that of its group, which may begin after
    the run and end before it. A role that did nothing counts for the whole run."""
    share, busy_s = summary["busy_share"].get(role, 0.0), summary["busy_s"].get(role, 0.0)
    return busy_s / share if share and busy_s else summary["wall_s"]
