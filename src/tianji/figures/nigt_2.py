"""Reacher and Hopper with equal and unequal times, as figure 2 of the second paper has Humanoid."""

from __future__ import annotations

from tianji.figures.gathered_figure import OPTIONS, GatheredFigure

__all__ = ["ABOUT", "OPTIONS", "draw", "read", "rerun"]

ABOUT = "Reacher and Hopper, equal and unequal times, 10 actors (beside paper 2, figure 2)"
_FIGURE = GatheredFigure("nigt-2", "Reacher and Hopper: what unequal times cost")
read, rerun, draw = _FIGURE.read, _FIGURE.rerun, _FIGURE.draw
