"""What several seeds reached together."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SUMMARY_FILE = "seeds.json"


def sum_up(
    runs: Sequence[Mapping[str, Any]], not_started: Sequence[int], run_dir: Path, total_s: float
) -> dict[str, Any]:
    """One object for all. runs: the summaries of those that were started, at least one."""
    shared = ("env", "algorithm", "engine", "target_return")
    return {
        **{key: runs[0][key] for key in shared},
        "seeds": [run["seed"] for run in runs],
        "not_started": list(not_started),
        "stopped_because": dict(Counter(run["stopped_because"] for run in runs)),
        "mean_return_100": spread([run["mean_return_100"] for run in runs]),
        "time_to_target_s": spread([run["time_to_target_s"] for run in runs]),
        "env_steps": spread([run["env_steps"] for run in runs]),
        "wall_s": spread([run["wall_s"] for run in runs]),
        "total_s": total_s,
        "run_dir": str(run_dir),
        "picture": None,
        "runs": list(runs),
    }


def spread(values: Sequence[float | None]) -> dict[str, float] | None:
    """Centre and spread of those that are known; None where none is.

    >>> spread([470.0, 490.0, None])
    {'count': 2, 'mean': 480.0, 'median': 480.0, 'std': 10.0, 'min': 470.0, 'max': 490.0}
    """
    known = [value for value in values if value is not None]
    if not known:
        return None
    return {
        "count": len(known),
        "mean": statistics.fmean(known),
        "median": statistics.median(known),
        "std": statistics.pstdev(known),
        "min": min(known),
        "max": max(known),
    }
