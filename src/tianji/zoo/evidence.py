"""What the presets have reached: results of benchmarks/zoo, which come with the package.

    row = evidence_of("hopper-sac")
    print(expectation(row))

Every seed is scored by the mean return of greedy episodes at the end of training. Statistics over
seeds are computed when results are published (benchmarks/zoo/publish.py), so that reading them
needs nothing but the standard library.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Literal, TypeAlias, TypedDict, get_args

from tianji.errors import UsageError, did_you_mean
from tianji.wording import counted

Verdict: TypeAlias = Literal["passed", "kept up", "not passed"]
"""passed: the preset loses at most 5 % of what Stable-Baselines3 gains over random actions.
kept up: so it does, but neither is better than random actions or than doing nothing."""

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


class Reached(TypedDict):
    """What one contestant reached in one row."""

    seeds: int
    returns: list[float]
    """Mean return of the greedy episodes, of every seed."""
    mean: float
    iqm: float
    """Interquartile mean over seeds."""
    low: float | None
    high: float | None
    """Ends of the 95 % interval of the interquartile mean; None with one seed."""
    trained_steps: int
    """Median over seeds, as are the seconds."""
    train_s: float
    machines: list[str]
    """Processors that the runs were made on, each run on one core."""


class WallTime(TypedDict):
    """Seconds for equally many steps, in turn on all cores of one machine."""

    env_steps: int
    turns: int
    tianji_s: float
    """From the first environment step to the end of training."""
    sb3_s: float
    tianji_whole_s: float
    """The whole program, with imports and the start of processes."""
    sb3_whole_s: float


class Row(TypedDict):
    """A preset, and Stable-Baselines3 with RL Zoo's settings at equal steps where it has the
    algorithm."""

    preset: str
    env: str
    algorithm: str
    env_steps: int
    random: float
    """Mean return of random actions."""
    doing_nothing: float | None
    """Return of doing nothing, where that is better than random actions."""
    tianji: Reached
    sb3: Reached | None
    verdict: Verdict | None
    wall_time: WallTime | None


class Zoo(TypedDict):
    """All results, and where they come from."""

    episodes: int
    """Greedy episodes of every seed."""
    machines: list[str]
    versions: dict[str, dict[str, str]]
    """Versions of the packages of each contestant."""
    commits: list[str]
    commands: dict[str, str]
    """One command of each contestant, as an example."""
    rows: list[Row]


@cache
def read_zoo() -> Zoo:
    """Return the results that come with this package."""
    text = (resources.files("tianji.zoo") / "results.json").read_text(encoding="utf-8")
    found: Zoo = json.loads(text)
    return found


def rows_of(presets: Sequence[str]) -> list[Row]:
    """Return the rows of these presets; UsageError for one that has none."""
    found = {row["preset"]: row for row in read_zoo()["rows"]}
    for name in presets:
        if name not in found:
            raise UsageError(
                f"The zoo has no preset '{name}'.{did_you_mean(name, found)} "
                f"It has: {', '.join(found)}."
            )
    return [found[name] for name in presets]


def evidence_of(preset: str) -> Row | None:
    """Return what a preset has reached; None if nobody has measured it."""
    return next((row for row in read_zoo()["rows"] if row["preset"] == preset), None)


def evidence_for(env: str, algorithm: str) -> Row | None:
    """Return the row of the preset for this environment and algorithm, if there is one."""
    asked = (env, algorithm)
    return next((r for r in read_zoo()["rows"] if (r["env"], r["algorithm"]) == asked), None)


def expectation(row: Row) -> str:
    """Return a sentence that says what to expect of a preset."""
    ours = row["tianji"]
    return (
        f"Preset '{row['preset']}' has reached {estimate_text(ours)} after {row['env_steps']:,} "
        f"steps ({_of_seeds(ours['seeds'])}, greedy actions)."
    )


def _of_seeds(seeds: int) -> str:
    if seeds == 1:
        return "1 seed"
    return f"interquartile mean of {counted(seeds, 'seed')} with its 95 % interval"


def baseline(row: Row) -> float:
    """Return what a policy that has learnt something exceeds."""
    idle = row["doing_nothing"]
    return row["random"] if idle is None else idle


def count_verdicts(rows: Sequence[Row]) -> str:
    """Return a sentence with the number of rows of each verdict."""
    counts = Counter(row["verdict"] for row in rows if row["verdict"] is not None)
    listed = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    return f"Of {counted(counts.total(), 'row')} with a peer: {listed or 'none'}."


def estimate_text(reached: Reached) -> str:
    """Return the interquartile mean and its interval.

    >>> estimate_text({"iqm": 499.0, "low": 497.5, "high": 500.0, ...})
    '499 (498 to 500)'
    """
    low, high = reached["low"], reached["high"]
    value = return_text(reached["iqm"])
    if low is None or high is None:
        return value
    return f"{value} ({return_text(low)} to {return_text(high)})"


def return_text(value: float) -> str:
    """Return a number with three digits or more.

    >>> [return_text(value) for value in (1234.5, 12.34, 0.954, -0.0)]
    ['1,234', '12.3', '0.95', '0.00']
    """
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{round(value, digits) + 0.0:,.{digits}f}"
