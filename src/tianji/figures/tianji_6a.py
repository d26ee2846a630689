"""Figure 6 (a) of the paper: rates by the number of actors, one learner with one thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tianji.figures.interface import Wish
from tianji.figures.points import read_points
from tianji.figures.scaling import SMALL, measure_scaling
from tianji.figures.scaling_picture import draw_scaling

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ABOUT = "production, reception and training by the number of actors (paper 1, figure 6 a)"
OPTIONS = frozenset({"rerun"})
NAME = "tianji-6a"


def read(_: Wish) -> dict[str, Any]:
    return read_points(NAME)


def rerun() -> dict[str, Any]:
    return measure_scaling(NAME, SMALL)


def draw(data: Mapping[str, Any]) -> Figure:
    return draw_scaling(data, "More actors help until the learner has all it can use")
