"""Figure 3 of the second paper: three tasks on a slow network."""

from __future__ import annotations

from tianji.figures.gathered_figure import OPTIONS, GatheredFigure

__all__ = ["ABOUT", "OPTIONS", "draw", "read", "rerun"]

ABOUT = "Reacher, Hopper and Walker2d on a slow network, 10 actors (paper 2, figure 3)"
_FIGURE = GatheredFigure("nigt-3", "A slow network: few rounds, so each must count")
read, rerun, draw = _FIGURE.read, _FIGURE.rerun, _FIGURE.draw
