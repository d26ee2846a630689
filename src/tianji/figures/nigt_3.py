"""Figure 3 of the second paper: three tasks on a slow network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tianji.figures.gathered_picture import draw_panels
from tianji.figures.interface import Wish
from tianji.figures.points import read_points

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ABOUT = "Reacher, Hopper and Walker2d on a slow network, 10 workers (paper 2, figure 3)"
OPTIONS = frozenset({"rerun"})
NAME = "nigt-3"


def read(_: Wish) -> dict[str, Any]:
    return read_points(NAME)


def rerun() -> dict[str, Any]:
    from tianji.figures.gathered_measure import measure_figure

    return measure_figure(NAME)


def draw(data: Mapping[str, Any]) -> Figure:
    return draw_panels(data, "A slow network: few rounds, so each must count")
