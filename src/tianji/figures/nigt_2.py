"""Reacher and Hopper with equal and unequal times, as figure 2 of the second paper has Humanoid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tianji.figures.gathered_picture import draw_panels
from tianji.figures.interface import Wish
from tianji.figures.points import read_points

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ABOUT = "Reacher and Hopper, equal and unequal times, 10 workers (beside paper 2, figure 2)"
OPTIONS = frozenset({"rerun"})
NAME = "nigt-2"


def read(_: Wish) -> dict[str, Any]:
    return read_points(NAME)


def rerun() -> dict[str, Any]:
    from tianji.figures.gathered_measure import measure_figure

    return measure_figure(NAME)


def draw(data: Mapping[str, Any]) -> Figure:
    return draw_panels(data, "Reacher and Hopper: what unequal times cost")
