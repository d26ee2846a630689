"""What several seeds reached together: seeds.json."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from tianji.records import StoppedBecause, Summary

SUMMARY_FILE = "seeds.json"


class Spread(TypedDict):
    """Centre and spread of the values that are known."""

    count: int
    mean: float
    median: float
    std: float
    min: float
    max: float


class SeedsSummary(TypedDict):
    """seeds.json: all seeds together, and the summary of each."""

    env: str
    algorithm: str
    engine: str
    target_return: float | None
    seeds: list[int]
    not_started: list[int]
    stopped_because: dict[StoppedBecause, int]
    mean_return_100: Spread | None
    time_to_target_s: Spread | None
    env_steps: Spread | None
    wall_s: Spread | None
    total_s: float
    run_dir: str
    picture: str | None
    runs: list[Summary]


def sum_up(
    runs: Sequence[Summary], not_started: Sequence[int], run_dir: Path, total_s: float
) -> SeedsSummary:
    """Sum up all seeds. runs: the summaries of those that were started, at least one."""
    first = runs[0]
    return SeedsSummary(
        env=first["env"],
        algorithm=first["algorithm"],
        engine=first["engine"],
        target_return=first["target_return"],
        seeds=[run["seed"] for run in runs],
        not_started=list(not_started),
        stopped_because=dict(Counter(run["stopped_because"] for run in runs)),
        mean_return_100=spread([run["mean_return_100"] for run in runs]),
        time_to_target_s=spread([run["time_to_target_s"] for run in runs]),
        env_steps=spread([run["env_steps"] for run in runs]),
        wall_s=spread([run["wall_s"] for run in runs]),
        total_s=total_s,
        run_dir=str(run_dir),
        picture=None,
        runs=list(runs),
    )


def spread(values: Sequence[float | None]) -> Spread | None:
    """Return None where no value is known.

    >>> spread([470.0, 490.0, None])
    {'count': 2, 'mean': 480.0, 'median': 480.0, 'std': 10.0, 'min': 470.0, 'max': 490.0}
    """
    known = [value for value in values if value is not None]
    if not known:
        return None
    return Spread(
        count=len(known),
        mean=statistics.fmean(known),
        median=statistics.median(known),
        std=statistics.pstdev(known),
        min=min(known),
        max=max(known),
    )
