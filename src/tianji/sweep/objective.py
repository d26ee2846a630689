"""What makes one trial better than another, as a number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tianji.config.run import RunConfig
from tianji.display.curve import Point
from tianji.errors import UsageError
from tianji.records import Summary

Asked: TypeAlias = Literal["auto", "return", "time"]
UNREACHED = 1e9
"""More than any time to a target, in seconds."""
MARKS = (1 / 64, 1 / 32, *(k / 16 for k in range(1, 17)))
"""Shares of max_env_steps at which a trial is compared with others, to end it if it is worse than
most. They are denser at first, because a run with a target may reach it early."""
WARM_UP_MARKS = 2
"""No trial is ended before this mark."""


@dataclass(frozen=True, slots=True)
class Objective:
    """`return`: the highest mean_return_100 at the end; `time`: the shortest time to the target."""

    name: Literal["return", "time"]
    target: float | None

    @property
    def direction(self) -> Literal["maximize", "minimize"]:
        return "maximize" if self.name == "return" else "minimize"

    @property
    def words(self) -> str:
        if self.name == "return":
            return "mean return of the last 100 episodes, at the end"
        return f"seconds of training to the target of {self.target:g}"

    def value(self, summary: Summary) -> float | None:
        """Return the value of a trial that has ended; None if no episode has finished.

        A trial that did not reach its target is worse than all that did, and the worse, the lower
        its return is.
        """
        mean = summary["mean_return_100"]
        if self.name == "return" or mean is None:
            return mean
        if summary["time_to_target_s"] is not None:
            return summary["time_to_target_s"]
        return UNREACHED + max(0.0, (self.target or 0.0) - mean)

    def shown(self, value: float | None) -> float | None:
        """Return what people are shown; None of a trial that did not reach its target."""
        return None if value is None or (self.name == "time" and value >= UNREACHED) else value

    def at_mark(self, mean_return: float) -> float:
        """Return the value of a trial on its way: higher returns are better for both."""
        return mean_return if self.name == "return" else -mean_return


def choose_objective(asked: Asked, config: RunConfig) -> Objective:
    """auto: a run that stops at a target always ends near it, so then its time counts."""
    if asked == "time" and config.target_return is None:
        raise UsageError(
            "--objective time: the runs have no target. Add --target-return, or use --objective "
            "return."
        )
    has_target = config.target_return is not None
    name: Literal["return", "time"] = "time" if has_target else "return"
    return Objective(name if asked == "auto" else asked, config.target_return)


def returns_at_marks(points: Sequence[Point], max_env_steps: int) -> dict[int, float]:
    """Return the mean return at every mark that a trial has passed, by the mark's number."""
    if not points:
        return {}
    found = {}
    for mark, share in enumerate(MARKS):
        steps = share * max_env_steps
        if points[0].env_steps <= steps <= points[-1].env_steps:
            found[mark] = next(p.mean_return for p in reversed(points) if p.env_steps <= steps)
    return found
