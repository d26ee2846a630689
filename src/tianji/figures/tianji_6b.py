"""Figure 6 (b) of the paper: the same with more learner threads and a larger batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tianji.config.machine import read_machine
from tianji.figures.interface import Wish
from tianji.figures.points import read_points
from tianji.figures.scaling import large, measure_scaling
from tianji.figures.scaling_picture import draw_scaling

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ABOUT = "the same with more learner threads and a larger batch (paper 1, figure 6 b)"
OPTIONS = frozenset({"rerun"})
NAME = "tianji-6b"


def read(_: Wish) -> dict[str, Any]:
    return read_points(NAME)


def rerun() -> dict[str, Any]:
    return measure_scaling(NAME, large(len(read_machine().cores)))


def draw(data: Mapping[str, Any]) -> Figure:
    return draw_scaling(data, "With more threads and a larger batch the balance moves on")
