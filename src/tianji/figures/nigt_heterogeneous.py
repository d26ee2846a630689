"""Two tasks, one actor for each, of which one is ten times slower: whose task is learnt?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tianji.figures.gathered_figure import OPTIONS, GatheredFigure
from tianji.figures.gathered_picture import (
    RETURN,
    draw_method,
    finish_axes,
    frame,
    panel_title,
)
from tianji.figures.look import BLACK, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ABOUT", "OPTIONS", "draw", "read", "rerun"]

ABOUT = "two tasks, one ten times slower: Malenia, AFedPG (our reconstruction), Rennala (paper 2)"
_COLUMNS = (
    ("return", "seconds", "mean of both tasks"),
    ("return", "rounds", "mean of both tasks, by rounds"),
    ("task_0", "seconds", "the fast actor's task: (s, 0)"),
    ("task_1", "seconds", "the slow actor's task: (-s, 1)"),
)


def draw_tasks(data: Mapping[str, Any], title: str) -> Figure:
    """A row for each environment: the mean of both tasks, and each task by itself."""
    panels = data["points"]
    figure = new_figure(15.0, 3.9 * len(panels) + 0.8)
    rows = figure.subplots(len(panels), len(_COLUMNS), sharey="row", squeeze=False)
    for row, panel in zip(rows, panels, strict=True):
        for axes, (value, along, text) in zip(row, _COLUMNS, strict=True):
            for method in panel["curves"]:
                draw_method(axes, panel, method, along, value)
            finish_axes(axes, panel, along, has_target=value == "return")
            axes.set_title(text, fontsize=9.5, color=BLACK, loc="left")
        row[0].set_title(f"{panel_title(panel)}\n{_COLUMNS[0][2]}", fontsize=9.5, loc="left")
        row[0].set_ylabel(RETURN, fontsize=9)
    frame(figure, data, title, rows[0][0])
    return figure


_FIGURE = GatheredFigure(
    "nigt-heterogeneous", "Two tasks with unequal actors: whose is learnt?", draw_tasks
)
read, rerun, draw = _FIGURE.read, _FIGURE.rerun, _FIGURE.draw
