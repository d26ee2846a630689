"""Equation 1 of the paper against measurement: the time to collect messages from several actors.

Sending, receiving and sampling are measured with one actor; the equation says what several take.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tianji.figures import style
from tianji.figures.files import Data, Point
from tianji.figures.paper.numbers import SATURATED_ACTORS
from tianji.figures.transports import COLLECTION_TIME, finish_axes, finish_values, size_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEASURED = "collection_s_per_10k"
# Key of a point, its label, colour, marker, dashes: the forms of the equation.
FORMS: Sequence[tuple[str, str, str, str, Any]] = (
    ("printed_equation_s_per_10k", "as printed", style.RED, "x", ":"),
    ("equation_s_per_10k", "divided by the actors", style.ORANGE, "s", (0, (4, 2))),
    ("predicted_s_per_10k", "divided, and a term for cores", style.BLUE, "o", "-"),
)
_COLORS = (style.GREEN, style.PURPLE)


def measure() -> Data:
    """Measure all settings once and predict those with several actors, in about two minutes."""
    from tianji.bench.sweep import sweep

    found = sweep(lambda text: sys.stderr.write(f"{text}\n"))
    return {name: found[name] for name in ("points", "saturation")}


def draw_equation(data: Data) -> Figure:
    """Draw times by actors on the left, and the deviation of every setting on the right."""
    figure = style.new_figure(13.0, 6.4, "Equation 1 against measurement: collecting messages")
    left, right = figure.subplots(1, 2, width_ratios=(5, 6))
    _draw_times(left, data["points"])
    _draw_deviations(right, [p for p in data["points"] if not p["is_fitted"]])
    machine = data["machine"]
    about = (
        f"{machine['cpu']}, {machine['cores']} cores; tianji {data['versions']['tianji']} "
        f"({data['commit']}); costs come from runs of one actor"
    )
    style.legend_below(figure, ncols=4, about=about, size=9)
    return figure


def _draw_times(axes: Any, points: Sequence[Point]) -> None:
    """Draw the settings with a sample time: measured as dots, the forms as lines."""
    sample_times_s = sorted({p["sample_time_s"] for p in points} - {0.0})
    counts = sorted({p["actors"] for p in points if p["sample_time_s"] > 0})
    for color, sample_s in zip(_COLORS, sample_times_s, strict=False):
        some = sorted(
            (p for p in points if p["sample_time_s"] == sample_s), key=lambda p: int(p["actors"])
        )
        at = [p["actors"] for p in some]
        for name, _, form_color, _, dashes in FORMS:
            axes.plot(at, [p[name] for p in some], color=form_color, linestyle=dashes)
        label = f"measured, sample time {sample_s * 1e3:g} ms"
        axes.plot(at, [p[MEASURED] for p in some], "D", color=color, markersize=7, label=label)
        _mark_paper(axes, some, sample_s, color)
    finish_axes(axes, "actors", {count: str(count) for count in counts})
    finish_values(axes)
    axes.set_ylabel(COLLECTION_TIME)
    sizes = {p["size_bytes"] for p in points if p["sample_time_s"] > 0}
    axes.set_title(f"messages of {', '.join(map(size_text, sizes))}", fontsize=11)


def _mark_paper(axes: Any, points: Sequence[Point], sample_s: float, color: str) -> None:
    """Point out the actors from which on more of them bring nothing in the paper."""
    actors = SATURATED_ACTORS.get(sample_s)
    found = [p[MEASURED] for p in points if p["actors"] == actors]
    if found:
        axes.annotate(
            "paper: bottleneck", (actors, found[0]), (0, -34), textcoords="offset points",
            ha="center", fontsize=8.5, color=style.BLACK,
            arrowprops={"arrowstyle": "->", "color": color},
        )  # fmt: skip


def _draw_deviations(axes: Any, points: Sequence[Point]) -> None:
    """Draw what each form says over what was measured, a row for each setting."""
    rows = range(len(points))
    axes.axvline(1.0, color=style.BLACK, linewidth=1.0)
    for name, label, color, marker, dashes in FORMS:
        ratios = [p[name] / p[MEASURED] for p in points]
        axes.plot(ratios, rows, marker, color=color, fillstyle="none", markersize=7)
        axes.plot([], [], marker=marker, color=color, linestyle=dashes, label=f"equation, {label}")
    style.quieten(axes)
    axes.set_xscale("log")
    ticks = (0.5, 1, 2, 5, 10, 20)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_yticks(list(rows), [_setting(p) for p in points], fontsize=8)
    axes.set_ylim(len(points) - 0.5, -0.5)
    axes.set_xlabel("predicted over measured time; 1 is exact")
    axes.set_title("settings with several actors", fontsize=11)


def _setting(point: Point) -> str:
    sample = f", {point['sample_time_s'] * 1e3:g} ms" if point["sample_time_s"] else ""
    return f"{size_text(point['size_bytes'])}, {point['actors']} actors{sample}"
