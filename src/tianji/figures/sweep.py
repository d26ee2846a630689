"""The pictures of two commands.

`tianji bench comm` draws figure 5 for this machine, with the model's predictions. `tianji simulate
--output` draws rates and lag against scale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from tianji.figures import style
from tianji.figures.files import Data, Point
from tianji.figures.transports import (
    COLLECTION_TIME,
    MESSAGES,
    finish_axes,
    finish_values,
    size_text,
)
from tianji.wording import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_sweep(report: Data) -> Figure:
    """Draw throughput by size on the left, collection time by number of actors on the right."""
    figure = style.new_figure(12.5, 5.2, "How fast experience moves on this machine")
    left, right = figure.subplots(1, 2)
    points = [p for p in report["points"] if not p["copying"]]
    _draw_sizes(left, [p for p in points if p["sample_time_s"] == 0])
    _draw_actors(right, points)
    for axes in (left, right):
        finish_values(axes)
        axes.legend(fontsize=9, frameon=False)
    return figure


def _draw_sizes(axes: Any, points: Sequence[Point]) -> None:
    points = [
        {**p, "predicted": p["size_bytes"] * MESSAGES / p["predicted_s_per_10k"] / 1e6}
        for p in sorted(points, key=itemgetter("size_bytes"))
    ]
    alone = [p for p in points if p["actors"] == 1]
    sizes = [p["size_bytes"] for p in alone]
    copied, label = [p["memcpy_mb_per_s"] for p in alone], "copying memory, one core"
    axes.plot(sizes, copied, color=style.BLACK, linewidth=1.2, linestyle=":", label=label)
    for look, num_actors in enumerate(sorted({p["actors"] for p in points})):
        line = [p for p in points if p["actors"] == num_actors]
        if len(line) > 1:
            at, label = [p["size_bytes"] for p in line], counted(num_actors, "actor")
            _draw_pair(axes, look, at, line, ("mb_per_s", "predicted"), label)
    ticks = {size: size_text(size) for size in sizes}
    finish_axes(axes, "size of a message", ticks, rotation=30)
    axes.set_ylabel("megabytes per second")
    axes.set_title("no sample time; thin dashes: the model", fontsize=10, loc="left")


def _draw_actors(axes: Any, points: Sequence[Point]) -> None:
    sampled = sorted({p["size_bytes"] for p in points if p["sample_time_s"] > 0})
    some = sorted((p for p in points if p["size_bytes"] in sampled), key=itemgetter("actors"))
    for look, sample_s in enumerate(sorted({p["sample_time_s"] for p in some})):
        line = [p for p in some if p["sample_time_s"] == sample_s]
        at, label = [p["actors"] for p in line], f"sample time {sample_s * 1e3:g} ms"
        _draw_pair(axes, look, at, line, ("collection_s_per_10k", "predicted_s_per_10k"), label)
    finish_axes(axes, "actors", {p["actors"]: str(p["actors"]) for p in some})
    axes.set_ylabel(COLLECTION_TIME)
    sizes = ", ".join(map(size_text, sampled))
    axes.set_title(f"messages of {sizes}; thin dashes: the model", fontsize=10, loc="left")


def _draw_pair(
    axes: Any, look: int, at: list[int], line: list[Point], names: tuple[str, str], label: str
) -> None:
    """Draw what was measured, and what the model says."""
    measured, predicted = ([p[name] for p in line] for name in names)
    color, marker = style.PALETTE[look], style.MARKERS[look]
    axes.plot(at, measured, marker=marker, color=color, linewidth=2.0, label=label)
    axes.plot(at, predicted, color=color, linewidth=1.0, linestyle=(0, (4, 3)))


RATES = (("produced", style.SKY, 6.0), ("received", style.BLUE, 2.0), ("trained", style.RED, 2.0))


def draw_scale(title: str, rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw what `tianji simulate --json` prints, from the smallest size to the largest."""
    figure = style.new_figure(11.0, 4.6, f"{title}: simulated rates and lag")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    name, at = _scale(rows)
    for rate, color, width in RATES:  # produced and received mostly coincide: a broad line below
        left.plot(at, [row[rate] for row in rows], color=color, linewidth=width, label=rate)
    ideal = [value * rows[0]["produced"] / at[0] for value in at]
    label = "produced, if it grew with scale"
    left.plot(at, ideal, color=style.QUIET, linewidth=1, linestyle=(0, (4, 3)), label=label)
    lags = [row["lag_versions"] for row in rows]
    right.plot(at, lags, marker="o", color=style.BLACK, linewidth=2)
    for axes in (left, right):
        finish_axes(axes, name, {value: f"{value:g}" for value in at})
    left.set_ylabel("environment steps per second")
    right.set(yscale="linear", ylim=(0, None), ylabel="mean lag, in versions")
    left.legend(fontsize=9, frameon=False)
    return figure


def _scale(rows: Sequence[Mapping[str, Any]]) -> tuple[str, list[int]]:
    """Return machines where their number changes, else groups, else actors."""
    hosts = [row["num_hosts"] for row in rows]
    if hosts[-1] > 1:
        actors = rows[-1]["actors_per_node"] * rows[-1]["groups_per_node"]
        return f"machines, {actors} actors on each", hosts
    if rows[-1]["num_groups"] > 1:
        return "groups", [row["num_groups"] for row in rows]
    return "actors", [row["actors_per_node"] for row in rows]
