"""Two grids beside that of the figures: the paper's whole one, and one of seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from tianji.figures.gathering.grid import Grid
from tianji.figures.gathering.measure import whole_grid
from tianji.figures.gathering.panels import (
    CHOICES,
    EQUAL,
    FIGURES,
    HETEROGENEOUS,
    HOPPER,
    HUMANOID,
    NO_NETWORK,
    REACHER,
    SLOW_NETWORK,
    TEN_TIMES,
    UNEQUAL,
    WALKER,
    Choice,
    Panel,
    Task,
)

ROUNDS = 1000
TASKS = (HUMANOID, REACHER, WALKER, HOPPER)
EXPONENTS = range(-10, 0)
ETAS = (0.001, 0.01, 0.1)
COUNTS = (20, 30, 50)


class Wanted(NamedTuple):
    """Figures by name, and the grid that has their runs."""

    figures: Mapping[str, Sequence[Panel]]
    grid: Grid


def of_figures() -> Wanted:
    return Wanted(FIGURES, whole_grid())


def of_paper() -> Wanted:
    """Everything that the paper says it tried: some 900 core-hours."""
    figures = {
        f"{task.env}-{num_actors}": [
            Panel(task, law, num_actors, ROUNDS, counts=COUNTS) for law in laws
        ]
        for task in TASKS
        for num_actors, laws in (
            (10, (EQUAL, UNEQUAL, SLOW_NETWORK)), (100, (EQUAL, NO_NETWORK)),
        )
    }  # fmt: skip
    for task in TASKS:
        twins = replace(task, num_parameters=task.num_parameters + 64, is_twin=True)
        figures[f"{task.env}-twins"] = [Panel(twins, TEN_TIMES, 2, ROUNDS, HETEROGENEOUS, COUNTS)]
    tried = [Choice(exponent, eta) for exponent, eta in product(EXPONENTS, ETAS)]
    choices = dict.fromkeys(CHOICES, tried)
    return Wanted(figures, Grid(_all(figures), choices))


def of_seconds() -> Wanted:
    """CartPole, a few rounds: every method with two seeds, Rennala with two step sizes."""
    task = Task("CartPole-v1", 50, 4610, 100.0, 20.0)
    figures = {
        "quick": [Panel(task, SLOW_NETWORK, 3, 2, counts=(4,))],
        "quick-three": [Panel(task, TEN_TIMES, 2, 1, HETEROGENEOUS, counts=(4,))],
    }
    choices = {method: [Choice(-6)] for method in CHOICES}
    choices["rennala-nigt"].append(Choice(-4))
    return Wanted(figures, Grid(_all(figures), choices, seeds=(1, 2)))


def _all(figures: Mapping[str, Sequence[Panel]]) -> list[Panel]:
    return [panel for panels in figures.values() for panel in panels]
