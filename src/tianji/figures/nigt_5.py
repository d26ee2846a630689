"""Figure 5 of the second paper: a hundred actors with unequal times and free messages."""

from __future__ import annotations

from tianji.figures.gathered_figure import OPTIONS, GatheredFigure

__all__ = ["ABOUT", "OPTIONS", "draw", "read", "rerun"]

ABOUT = "unequal times and free messages, 100 actors (paper 2, figure 5)"
_FIGURE = GatheredFigure("nigt-5", "A hundred actors with unequal times")
read, rerun, draw = _FIGURE.read, _FIGURE.rerun, _FIGURE.draw
