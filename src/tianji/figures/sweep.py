"""The pictures of two commands.

`tianji bench comm` draws figure 5 for this machine, with the model's predictions. `tianji simulate
--output` draws rates and lag against scale.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from tianji.figures import style
from tianji.figures.files import Data, Point
from tianji.figures.transports import (
    COLLECTION_TIME,
    MESSAGES,
    collection_s,
    finish_axes,
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
        _label_values(axes)
        axes.legend(fontsize=9, frameon=False)
    return figure


def _label_values(axes: Any) -> None:
    """Write 1, 2, 5, 10 ... instead of powers of ten alone: the range is small."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    axes.yaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))


def _draw_sizes(axes: Any, points: Sequence[Point]) -> None:
    alone = sorted((p for p in points if p["actors"] == 1), key=itemgetter("size_bytes"))
    sizes = [p["size_bytes"] for p in alone]
    copied, label = [p["memcpy_mb_per_s"] for p in alone], "copying memory, one core"
    axes.plot(sizes, copied, color=style.BLACK, linewidth=1.2, linestyle=":", label=label)
    for look, num_actors in enumerate(sorted({p["actors"] for p in points})):
        line = [p for p in points if p["actors"] == num_actors]
        if len(line) > 1:
            label = counted(num_actors, "actor")
            _draw_pair(axes, look, line, "size_bytes", label, _mb_per_s, _predicted_mb_per_s)
    ticks = {size: size_text(size) for size in sizes}
    finish_axes(axes, "size of a message", ticks, rotation=30)
    axes.set_ylabel("megabytes per second")
    axes.set_title("no sample time; thin dashes: the model", fontsize=10, loc="left")


def _draw_actors(axes: Any, points: Sequence[Point]) -> None:
    sampled = sorted({p["size_bytes"] for p in points if p["sample_time_s"] > 0})
    some = [p for p in points if p["size_bytes"] in sampled]
    for look, sample_s in enumerate(sorted({p["sample_time_s"] for p in some})):
        line = [p for p in some if p["sample_time_s"] == sample_s]
        label = f"sample time {sample_s * 1e3:g} ms"
        _draw_pair(axes, look, line, "actors", label, collection_s, _predicted_s)
    finish_axes(axes, "actors", {n: str(n) for n in sorted({p["actors"] for p in some})})
    axes.set_ylabel(COLLECTION_TIME)
    sizes = ", ".join(map(size_text, sampled))
    axes.set_title(f"messages of {sizes}; thin dashes: the model", fontsize=10, loc="left")


def _draw_pair(
    axes: Any,
    look: int,
    points: Sequence[Point],
    along: str,
    label: str,
    measured: Callable[[Point], float],
    predicted: Callable[[Point], float],
) -> None:
    points = sorted(points, key=itemgetter(along))
    at, color = [p[along] for p in points], style.PALETTE[look]
    axes.plot(
        at, [measured(p) for p in points], marker=style.MARKERS[look], color=color, linewidth=2.0,
        label=label,
    )  # fmt: skip
    axes.plot(at, [predicted(p) for p in points], color=color, linewidth=1.0, linestyle=(0, (4, 3)))


def _mb_per_s(point: Point) -> float:
    return float(point["mb_per_s"])


def _predicted_s(point: Point) -> float:
    return float(point["predicted_s_per_10k"])


def _predicted_mb_per_s(point: Point) -> float:
    return float(point["size_bytes"] * MESSAGES / _predicted_s(point) / 1e6)


RATES = (("produced", style.SKY, 6.0), ("received", style.BLUE, 2.0), ("trained", style.RED, 2.0))


def draw_scale(title: str, rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw what `tianji simulate --json` prints, from the smallest size to the largest."""
    figure = style.new_figure(11.0, 4.6, f"{title}: simulated rates and lag")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    name, at = _scale(rows)
    for rate, color, width in RATES:  # produced and received mostly coincide: a broad line below
        left.plot(at, [row[rate] for row in rows], color=color, linewidth=width, label=rate)
    _draw_ideal(left, at, rows)
    left.set_ylabel("environment steps per second")
    left.set_yscale("log")
    right.plot(
        at, [row["lag_versions"] for row in rows], marker="o", color=style.BLACK, linewidth=2
    )
    right.set_ylim(bottom=0)
    right.set_ylabel("mean lag, in versions")
    for axes in (left, right):
        style.quieten(axes)
        axes.set_xscale("log", base=2)
        axes.set_xticks(at, [f"{value:g}" for value in at])
        axes.minorticks_off()
        axes.set_xlabel(name)
    left.legend(fontsize=9, frameon=False)
    return figure


def _scale(rows: Sequence[Mapping[str, Any]]) -> tuple[str, list[int]]:
    """Return machines where their number changes, else actors."""
    nodes = [row["nodes"] for row in rows]
    if nodes[-1] > 1:
        return f"machines, {rows[-1]['actors_per_node']} actors on each", nodes
    return "actors", [row["actors_per_node"] for row in rows]


def _draw_ideal(axes: Any, at: Sequence[int], rows: Sequence[Mapping[str, Any]]) -> None:
    first = rows[0]["produced"] / at[0]
    axes.plot(
        at, [first * value for value in at], color=style.QUIET, linewidth=1, linestyle=(0, (4, 3)),
        label="produced, if it grew with scale",
    )  # fmt: skip
