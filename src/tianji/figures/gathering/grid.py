"""The runs that a figure needs: all step sizes with one seed, then the best with all seeds.

The simulation of `tianji simulate` says when the rounds of a method end under a law.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import count, islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tianji.algorithms.interface import Gather, Rule
from tianji.balance.given_times import Times
from tianji.config.run import TimesConfig
from tianji.figures.gathering.panels import (
    CHOICES,
    COUNTED,
    SEEDS,
    Choice,
    Law,
    M,
    Panel,
    Task,
    Trial,
    order_of,
)
from tianji.types import Array
from tianji.virtual.rounds import Round, simulate_rounds

_RULES: Mapping[str, Rule] = {
    "rennala-nigt": "first", "malenia-nigt": "harmonic", "sync-nigt": "barrier", "afedpg": "every",
}  # fmt: skip
_ENDLESS = 10**9


def rounds_of(
    method: str, law: Law, num_actors: int, m: int, num_parameters: int = 0
) -> Iterator[Round]:
    """Yield the rounds of a method, endlessly."""
    size = num_parameters if law.network == "sqrt-size" else 0
    known, more = _simulation(method, law, num_actors, m, size)
    for number in count():
        if number == len(known):
            known.append(next(more))
        yield known[number]


@cache
def _simulation(
    method: str, law: Law, num_actors: int, m: int, num_parameters: int
) -> tuple[list[Round], Iterator[Round]]:
    """Return the rounds simulated so far, and the following ones: panels share simulations."""
    gather = Gather(_RULES[method], m, m)
    config = TimesConfig(law=law.compute, compute=law.given, network=law.network)
    times = Times(config, num_actors, num_parameters, seed=0)
    return [], simulate_rounds(gather, times, num_actors, 1, _ENDLESS)


def end_s(rounds: Iterator[Round], num_rounds: int) -> float:
    """Return when the last of this many rounds ends."""
    return next(islice(rounds, num_rounds - 1, None)).finish_s


@cache
def length_s(panel: Panel) -> float:
    """Return the duration of a panel: the time that its first method takes for its rounds."""
    rounds = rounds_of(panel.methods[0], panel.law, panel.num_actors, M, panel.task.num_parameters)
    return end_s(rounds, panel.rounds)


class Work(NamedTuple):
    """The rounds and gradients of a method within the duration of a panel.

    finish_s: the end of each round.
    """

    finish_s: tuple[float, ...]
    gradients: int
    discarded: int


@cache
def work_in(panel: Panel, method: str, m: int = M) -> Work:
    finish_s: list[float] = []
    gradients = discarded = 0
    until_s = length_s(panel) * (1 + 1e-9)
    for done in rounds_of(method, panel.law, panel.num_actors, m, panel.task.num_parameters):
        if done.finish_s > until_s:
            break
        finish_s.append(done.finish_s)
        gradients += sum(done.counts.values())
        discarded += done.discarded
    return Work(tuple(finish_s), gradients, discarded)


Runs: TypeAlias = Mapping[str, Mapping[str, Any]]  # results of runs, by the names of the trials
_LAST_PART = 0.25  # the share of a panel, at its end, whose mean return decides on the step size


class Grid:
    """The runs of some panels.

    Panels whose methods have the same order of arrivals share runs, which are as long as the
    longest of these panels needs. All panels that are drawn therefore belong into one grid.

    trials = grid.wanted(panels, runs)     # more of them as results become known
    """

    def __init__(
        self,
        panels: Sequence[Panel],
        choices: Mapping[str, Sequence[Choice]] = CHOICES,
        seeds: Sequence[int] = SEEDS,
    ) -> None:
        self.seeds = tuple(seeds)
        self._panels = tuple(panels)
        self._choices = choices

    def _tried(self, panel: Panel, method: str) -> list[Choice]:
        counts = panel.counts if method in COUNTED else panel.counts[:1]
        more = [Choice(exponent) for name, exponent in panel.more if name == method]
        return [choice._replace(m=m) for m in counts for choice in (*self._choices[method], *more)]

    def trial(self, panel: Panel, method: str, choice: Choice, seed: int) -> Trial:
        """Return the trial, as long as the longest panel that shows it."""
        key = _key(panel, method)
        sharing = (
            other
            for other, name in _pairs(self._panels)
            if name == method and _key(other, method) == key
            if choice.m in {tried.m for tried in self._tried(other, method)}
        )
        num_rounds = max(len(work_in(other, method, choice.m).finish_s) for other in sharing)
        task, num_actors, _, order = key
        return Trial(task, method, num_actors, order, choice, seed, num_rounds)

    def wanted(self, panels: Sequence[Panel], runs: Runs) -> list[Trial]:
        """Return all choices with the first seed and, once the best is known, it with all seeds."""
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
        """Return the choice with the highest mean return at the end of the panel; None before all
        choices were tried."""
        scores = self.scores(panel, method, runs)
        if set(scores) != set(self._tried(panel, method)):
            return None
        return max(scores, key=lambda choice: scores[choice])

    def scores(self, panel: Panel, method: str, runs: Runs) -> dict[Choice, float]:
        """Return the score of every choice that was tried with the first seed."""
        found = {}
        for choice in self._tried(panel, method):
            run = run_of(self.trial(panel, method, choice, self.seeds[0]), runs)
            if run is not None:
                found[choice] = _score(on_clock(panel, method, choice.m, run["curve"]))
        return found


def run_of(trial: Trial, runs: Runs) -> Mapping[str, Any] | None:
    """Return the result of a trial; a run that is too short does not count."""
    run = runs.get(trial.name)
    return None if run is None or run["num_rounds"] < trial.num_rounds else run


def _pairs(panels: Sequence[Panel]) -> Iterator[tuple[Panel, str]]:
    return ((panel, method) for panel in panels for method in panel.methods)


def _key(panel: Panel, method: str) -> tuple[Task, int, str, Law]:
    return panel.task, panel.num_actors, method, order_of(method, panel.law)


def on_clock(
    panel: Panel, method: str, m: int, curve: Mapping[str, Sequence[float]]
) -> dict[str, list[float]]:
    """Return the part of a run that lies in the panel, with the seconds of the panel's law."""
    finish_s = work_in(panel, method, m).finish_s
    inside = sum(number <= len(finish_s) for number in curve["rounds"])
    seconds = [finish_s[int(number) - 1] for number in curve["rounds"][:inside]]
    return {**{name: list(values[:inside]) for name, values in curve.items()},
            "seconds": [round(second, 3) for second in seconds]}  # fmt: skip


def _score(curve: Mapping[str, Sequence[float]]) -> float:
    seconds: Array = np.asarray(curve["seconds"])
    last = seconds >= seconds[-1] * (1 - _LAST_PART)
    return round(float(np.asarray(curve["return"])[last].mean()), 3)
