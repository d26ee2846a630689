"""Which runs a figure needs: first all step sizes with one seed, then the best with all seeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from tianji.figures.gathered import (
    CHOICES,
    COUNTED,
    SEEDS,
    Choice,
    Law,
    Panel,
    Task,
    Trial,
    order_of,
)
from tianji.figures.gathered_clock import work_in
from tianji.types import Array

Runs: TypeAlias = Mapping[str, Mapping[str, Any]]
"""What was measured, by the names of the trials."""
_LAST_PART = 0.25
"""Of a panel: what the step size is chosen by."""


class Grid:
    """The runs of some panels. Panels whose methods have the same order of arrivals share runs, as
    long as the longest of them: so all that are ever drawn belong into one grid.

    trials = grid.wanted(panels, runs)     # more of them as runs become known
    """

    def __init__(
        self,
        panels: Sequence[Panel],
        choices: Mapping[str, Sequence[Choice]] = CHOICES,
        seeds: Sequence[int] = SEEDS,
    ) -> None:
        self.seeds = tuple(seeds)
        self._choices = choices
        self._num_rounds: dict[tuple[Task, int, str, Law, int], int] = {}
        for panel, method in _pairs(panels):
            for m in {choice.m for choice in self._tried(panel, method)}:
                key = (*_key(panel, method), m)
                longest = self._num_rounds.get(key, 0)
                self._num_rounds[key] = max(longest, len(work_in(panel, method, m).finish_s))

    def _tried(self, panel: Panel, method: str) -> list[Choice]:
        counts = panel.counts if method in COUNTED else panel.counts[:1]
        more = [Choice(exponent) for name, exponent in panel.more if name == method]
        return [choice._replace(m=m) for m in counts for choice in (*self._choices[method], *more)]

    def trial(self, panel: Panel, method: str, choice: Choice, seed: int) -> Trial:
        """As long as the longest panel that shows it."""
        key = _key(panel, method)
        task, num_actors, _, order = key
        num_rounds = self._num_rounds[*key, choice.m]
        return Trial(task, method, num_actors, order, choice, seed, num_rounds)

    def wanted(self, panels: Sequence[Panel], runs: Runs) -> list[Trial]:
        """Everything that is tried with the first seed, and, as soon as it is known what is best,
        that with all seeds."""
        return list(dict.fromkeys([*self.tuning(panels), *self._final(panels, runs)]))

    def tuning(self, panels: Sequence[Panel]) -> list[Trial]:
        found = (
            self.trial(panel, method, choice, self.seeds[0])
            for panel, method in _pairs(panels)
            for choice in self._tried(panel, method)
        )
        return list(dict.fromkeys(found))

    def _final(self, panels: Sequence[Panel], runs: Runs) -> list[Trial]:
        chosen = (
            (panel, method, self.choose(panel, method, runs)) for panel, method in _pairs(panels)
        )
        return [
            self.trial(panel, method, choice, seed)
            for panel, method, choice in chosen
            if choice is not None
            for seed in self.seeds
        ]

    def choose(self, panel: Panel, method: str, runs: Runs) -> Choice | None:
        """What has the highest mean return over the last part of the panel; None before all that
        is to be tried has been tried."""
        scores = self.scores(panel, method, runs)
        if set(scores) != set(self._tried(panel, method)):
            return None
        return max(scores, key=lambda choice: scores[choice])

    def scores(self, panel: Panel, method: str, runs: Runs) -> dict[Choice, float]:
        """Of everything that was tried with the first seed."""
        found = {}
        for choice in self._tried(panel, method):
            run = run_of(self.trial(panel, method, choice, self.seeds[0]), runs)
            if run is not None:
                found[choice] = _score(on_clock(panel, method, choice.m, run["curve"]))
        return found


def run_of(trial: Trial, runs: Runs) -> Mapping[str, Any] | None:
    """What was measured of a trial; a shorter run than is wanted does not count."""
    run = runs.get(trial.name)
    return None if run is None or run["num_rounds"] < trial.num_rounds else run


def _pairs(panels: Sequence[Panel]) -> Iterator[tuple[Panel, str]]:
    return ((panel, method) for panel in panels for method in panel.methods)


def _key(panel: Panel, method: str) -> tuple[Task, int, str, Law]:
    return panel.task, panel.num_actors, method, order_of(method, panel.law)


def on_clock(
    panel: Panel, method: str, m: int, curve: Mapping[str, Sequence[float]]
) -> dict[str, list[float]]:
    """The part of a run that lies in the panel, with the seconds of the panel's law."""
    finish_s = work_in(panel, method, m).finish_s
    inside = sum(number <= len(finish_s) for number in curve["rounds"])
    seconds = [finish_s[int(number) - 1] for number in curve["rounds"][:inside]]
    return {**{name: list(values[:inside]) for name, values in curve.items()},
            "seconds": [round(second, 3) for second in seconds]}  # fmt: skip


def _score(curve: Mapping[str, Sequence[float]]) -> float:
    seconds: Array = np.asarray(curve["seconds"])
    last = seconds >= seconds[-1] * (1 - _LAST_PART)
    return round(float(np.asarray(curve["return"])[last].mean()), 3)
