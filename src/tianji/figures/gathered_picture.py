"""The picture of gathered gradients: a column for each panel, over time and over rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tianji.figures.gathered_data import Curve, quantiles
from tianji.figures.look import BLACK, BLUE, GREEN, ORANGE, QUIET, RED, new_figure, quieten

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = {
    "rennala-nigt": "Rennala NIGT", "malenia-nigt": "Malenia NIGT", "sync-nigt": "synchronous NIGT",
    "afedpg": "AFedPG (our reconstruction)",
}  # fmt: skip
COLORS = {"rennala-nigt": BLUE, "malenia-nigt": GREEN, "sync-nigt": RED, "afedpg": ORANGE}
RETURN = "mean return of the last 100 episodes"
TIME, ROUNDS = "simulated time", "rounds (versions)"
_PLACES = 240


def draw_panels(data: Mapping[str, Any], title: str) -> Figure:
    """Time above, rounds below; of a single panel side by side."""
    panels: Sequence[Mapping[str, Any]] = data["points"]
    if len(panels) == 1:
        figure = new_figure(10.0, 4.8)
        pairs = [figure.subplots(1, 2, sharey=True)]
    else:
        figure = new_figure(3.7 * len(panels) + 0.6, 7.4)
        pairs = list(figure.subplots(2, len(panels), sharey="col").T)
    for panel, (by_time, by_rounds) in zip(panels, pairs, strict=True):
        for method in panel["curves"]:
            draw_method(by_time, panel, method, "seconds")
            draw_method(by_rounds, panel, method, "rounds")
        finish_axes(by_time, panel, "seconds")
        finish_axes(by_rounds, panel, "rounds")
        by_time.set_title(panel_title(panel), fontsize=9.5, color=BLACK, loc="left")
    for axes in pairs[0]:
        axes.set_ylabel(RETURN, fontsize=9)
    frame(figure, data, title, pairs[0][0])
    return figure


def draw_method(
    axes: Any, panel: Mapping[str, Any], method: str, along: str, value: str = "return"
) -> None:  # fmt: skip
    """The median of all seeds, and the band from 20 to 80 %."""
    curves: Sequence[Curve] = panel["curves"][method]
    at = _places(panel, curves, along)
    low, middle, high = quantiles(curves, along, at, value)
    color = COLORS[method]
    axes.fill_between(at, low, high, color=color, alpha=0.15, linewidth=0)
    is_first = method == next(iter(panel["curves"]))
    # The thick one lies below: where two coincide, both are seen.
    axes.plot(at, middle, color=color, linewidth=3.0 if is_first else 1.3, label=NAMES[method])


def _places(panel: Mapping[str, Any], curves: Sequence[Curve], along: str) -> Any:
    """Where all seeds have values."""
    first = max(curve[along][0] for curve in curves)
    if along == "seconds":
        return np.linspace(first, panel["length_s"], _PLACES)
    return np.geomspace(max(1.0, first), min(curve[along][-1] for curve in curves), _PLACES)


def finish_axes(axes: Any, panel: Mapping[str, Any], along: str, has_target: bool = True) -> None:
    """has_target: show the return to which times are compared, and their ratios."""
    quieten(axes)
    if along == "rounds":
        axes.set_xscale("log")
        axes.set_xlabel(ROUNDS, fontsize=8)
        return
    axes.set_xlim(0, panel["length_s"])
    axes.set_xlabel(TIME, fontsize=8)
    if has_target:
        axes.axhline(panel["target"], color=QUIET, linewidth=0.9, linestyle=":")
        axes.set_xlabel(f"{TIME}\n{ratios_text(panel)}", fontsize=8)


def panel_title(panel: Mapping[str, Any]) -> str:
    twins = ", two tasks" if panel["is_twin"] else ""
    m = next(iter(panel["methods"].values()))["chosen"]["m"]
    return f"{panel['env']}{twins}, n = {panel['num_actors']}, M = {m}\n{panel['law']}"


def ratios_text(panel: Mapping[str, Any]) -> str:
    """How many times as long as the first method the others take to the dotted return."""
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
    """Two digits behind the point, or three digits in all: `1.32`, `26.1`, `346`."""
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.3g}"


def frame(figure: Figure, data: Mapping[str, Any], title: str, axes: Any) -> None:
    """Title, legend, and where it comes from."""
    figure.suptitle(title, fontsize=13, fontweight="bold", x=0.01, ha="left")
    settings = data["settings"]
    about = (
        f"medians and bands from 20 to 80 % of {len(settings['seeds'])} seeds; "
        f"eta = {settings['eta']:g}, step sizes tuned on one seed; "
        f"tianji {data['versions']['tianji']} ({data['commit']})"
    )
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower left", ncols=4, fontsize=9, frameon=False,
        title=about, title_fontsize=8, alignment="left",
    )  # fmt: skip
