"""A figure of gathered gradients as a module offers it (see figures/interface.py): its data comes
with the package, or is measured here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tianji.figures.gathered_picture import draw_panels
from tianji.figures.interface import Wish
from tianji.figures.points import read_points

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OPTIONS = frozenset({"rerun"})


@dataclass(frozen=True)
class GatheredFigure:
    """GatheredFigure("nigt-1", "Humanoid: what unequal times and a slow network cost")"""

    name: str
    title: str
    picture: Callable[[Mapping[str, Any], str], Figure] = draw_panels

    def read(self, _: Wish) -> dict[str, Any]:
        return read_points(self.name)

    def rerun(self) -> dict[str, Any]:
        from tianji.figures.gathered_measure import measure_figure

        return measure_figure(self.name)

    def draw(self, data: Mapping[str, Any]) -> Figure:
        return self.picture(data, self.title)
