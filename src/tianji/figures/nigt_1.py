"""Figure 1 of the second paper: Humanoid, from equal times to a slow network."""

from __future__ import annotations

from tianji.figures.gathered_figure import OPTIONS, GatheredFigure

__all__ = ["ABOUT", "OPTIONS", "draw", "read", "rerun"]

ABOUT = "Humanoid, from equal times to a slow network, 10 actors (paper 2, figure 1)"
_FIGURE = GatheredFigure("nigt-1", "Humanoid: what unequal times and a slow network cost")
read, rerun, draw = _FIGURE.read, _FIGURE.rerun, _FIGURE.draw
