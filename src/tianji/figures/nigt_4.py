"""Figure 4 of the second paper: a hundred actors with equal times."""

from __future__ import annotations

from tianji.figures.gathered_figure import OPTIONS, GatheredFigure

__all__ = ["ABOUT", "OPTIONS", "draw", "read", "rerun"]

ABOUT = "equal times, 100 actors (paper 2, figure 4)"
_FIGURE = GatheredFigure("nigt-4", "A hundred actors with equal times")
read, rerun, draw = _FIGURE.read, _FIGURE.rerun, _FIGURE.draw
