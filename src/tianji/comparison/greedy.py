"""The policies that runs end with, played without exploration.

Returns of training include whatever a style does to explore, which may be a lot: the environments
of Ape-X never stop taking random actions. So each policy also plays some episodes greedily.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tianji.comparison.outcomes import is_finished
from tianji.records import Summary

EPISODES = 20


def greedy_returns(
    done: Mapping[str, Summary], folder: Path, known: Mapping[str, float | None]
) -> dict[str, float | None]:
    """Return the mean greedy return of each run that came to its end, by its name; None for a run
    that saved no policy. known: those that were played before."""
    missing = [name for name, run in done.items() if is_finished(run) and name not in known]
    return {**known, **{name: _play(folder / name, done[name]) for name in missing}}


def _play(run_dir: Path, summary: Summary) -> float | None:
    if summary["checkpoint"] is None:
        return None
    from tianji.trained.evaluate import evaluate_run  # it loads torch

    played = evaluate_run(run_dir, EPISODES, summary["seed"], checkpoint="latest")
    return float(played["mean"])
