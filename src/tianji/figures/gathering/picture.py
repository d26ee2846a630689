"""The pictures of the nigt figures: returns over simulated time and over rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tianji.figures import style
from tianji.figures.files import Data
from tianji.figures.gathering.comparison import Curve, quantiles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = {
    "rennala-nigt": "Rennala NIGT", "malenia-nigt": "Malenia NIGT", "sync-nigt": "synchronous NIGT",
    "afedpg": "AFedPG (our reconstruction)",
}  # fmt: skip
COLORS = {
    "rennala-nigt": style.BLUE,
    "malenia-nigt": style.GREEN,
    "sync-nigt": style.RED,
    "afedpg": style.ORANGE,
}
RETURN = "mean return of the last 100 episodes"
TIME, ROUNDS = "simulated time", "rounds (versions)"
_PLACES = 240
_TASK_COLUMNS = (
    ("return", "seconds", "mean of both tasks"),
    ("return", "rounds", "mean of both tasks, by rounds"),
    ("task_0", "seconds", "the fast actor's task: (s, 0)"),
    ("task_1", "seconds", "the slow actor's task: (-s, 1)"),
)


def draw_panels(data: Data, title: str) -> Figure:
    """Draw a column for each panel, time above and rounds below; a single panel side by side."""
    panels: Sequence[Mapping[str, Any]] = data["points"]
    if len(panels) == 1:
        figure = style.new_figure(10.0, 4.8, title)
        pairs = [figure.subplots(1, 2, sharey=True)]
    else:
        figure = style.new_figure(3.7 * len(panels) + 0.6, 7.4, title)
        pairs = list(figure.subplots(2, len(panels), sharey="col").T)
    for panel, (by_time, by_rounds) in zip(panels, pairs, strict=True):
        _draw_curves(by_time, panel, "seconds")
        _draw_curves(by_rounds, panel, "rounds")
        by_time.set_title(panel_title(panel), fontsize=9.5, color=style.BLACK, loc="left")
    for axes in pairs[0]:
        axes.set_ylabel(RETURN, fontsize=9)
    style.legend_below(figure, ncols=4, about=_provenance(data))
    return figure


def draw_tasks(data: Data, title: str) -> Figure:
    """Draw a row for each panel: the mean of both tasks, and each task by itself."""
    panels = data["points"]
    figure = style.new_figure(15.0, 3.9 * len(panels) + 0.8, title)
    rows = figure.subplots(len(panels), len(_TASK_COLUMNS), sharey="row", squeeze=False)
    for row, panel in zip(rows, panels, strict=True):
        for axes, (value, along, text) in zip(row, _TASK_COLUMNS, strict=True):
            _draw_curves(axes, panel, along, value)
            axes.set_title(text, fontsize=9.5, color=style.BLACK, loc="left")
        row[0].set_title(f"{panel_title(panel)}\n{_TASK_COLUMNS[0][2]}", fontsize=9.5, loc="left")
        row[0].set_ylabel(RETURN, fontsize=9)
    style.legend_below(figure, ncols=4, about=_provenance(data))
    return figure


def _draw_curves(axes: Any, panel: Mapping[str, Any], along: str, value: str = "return") -> None:
    """Draw the median of all seeds and the band from 20 to 80 %, for every method."""
    width = 3.0  # The first line is thick and lies below, so that coinciding lines can be seen.
    for method, curves in panel["curves"].items():
        at = _places(panel, curves, along)
        low, middle, high = quantiles(curves, along, at, value)
        axes.fill_between(at, low, high, color=COLORS[method], alpha=0.15, linewidth=0)
        axes.plot(at, middle, color=COLORS[method], linewidth=width, label=NAMES[method])
        width = 1.3
    style.quieten(axes)
    if along == "rounds":
        axes.set_xscale("log")
        axes.set_xlabel(ROUNDS, fontsize=8)
        return
    axes.set_xlim(0, panel["length_s"])
    axes.set_xlabel(TIME, fontsize=8)
    if value == "return":
        axes.axhline(panel["target"], color=style.QUIET, linewidth=0.9, linestyle=":")
        axes.set_xlabel(f"{TIME}\n{ratios_text(panel)}", fontsize=8)


def _places(panel: Mapping[str, Any], curves: Sequence[Curve], along: str) -> Any:
    """Return places at which all seeds have values."""
    first = max(curve[along][0] for curve in curves)
    if along == "seconds":
        return np.linspace(first, panel["length_s"], _PLACES)
    return np.geomspace(max(1.0, first), min(curve[along][-1] for curve in curves), _PLACES)


def panel_title(panel: Mapping[str, Any]) -> str:
    twins = ", two tasks" if panel["is_twin"] else ""
    m = next(iter(panel["methods"].values()))["chosen"]["m"]
    return f"{panel['env']}{twins}, n = {panel['num_actors']}, M = {m}\n{panel['law']}"


def ratios_text(panel: Mapping[str, Any]) -> str:
    """Say how many times longer than the first method the others take to the dotted return."""
    first = short(next(iter(panel["curves"])))
    found = panel["times_to_target"].items()
    lines = (f"{short(method)} / {first}: {band_text(*ratios)}" for method, ratios in found)
    return "\n".join(("time to the dotted return:", *lines))


def short(method: str) -> str:
    return method.partition("-")[0]


def band_text(low: float | None, middle: float | None, high: float | None) -> str:
    shown = ["never" if value is None else _short(value) for value in (low, middle, high)]
    return f"{shown[1]} ({shown[0]} to {shown[2]})"


def _short(value: float) -> str:
    """Return two decimals, or three digits in total: `1.32`, `26.1`, `346`."""
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.3g}"


def _provenance(data: Data) -> str:
    settings = data["settings"]
    return (
        f"medians and bands from 20 to 80 % of {len(settings['seeds'])} seeds; "
        f"eta = {settings['eta']:g}, step sizes tuned on one seed; "
        f"tianji {data['versions']['tianji']} ({data['commit']})"
    )
