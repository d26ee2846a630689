"""The picture of `tianji bench comm`: this machine's own figure 5, with the model laid over it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tianji.figures.look import BLACK, MARKERS, PALETTE, new_figure, quieten
from tianji.figures.points import MESSAGES, Point, collection_s
from tianji.figures.tianji_5a import size_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_sweep(report: Mapping[str, Any]) -> Figure:
    """Throughput by size on the left, collection time by number of actors on the right."""
    figure = new_figure(12.5, 5.2)
    left, right = figure.subplots(1, 2)
    _draw_sizes(left, report["points"])
    _draw_actors(right, report["points"])
    figure.suptitle(
        "How fast experience moves on this machine",
        fontsize=13, fontweight="bold", x=0.01, ha="left",
    )  # fmt: skip
    for axes in (left, right):
        quieten(axes)
        axes.minorticks_off()
        _label_values(axes)
        axes.legend(fontsize=9, frameon=False)
    return figure


def _label_values(axes: Any) -> None:
    """1, 2, 5, 10 ... instead of powers of ten alone: the range is small."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    axes.yaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))


def _draw_sizes(axes: Any, points: Sequence[Point]) -> None:
    without = [p for p in points if p["sample_time_s"] == 0 and not p["copying"]]
    alone = sorted((p for p in without if p["actors"] == 1), key=lambda p: p["size_bytes"])
    sizes = [p["size_bytes"] for p in alone]
    axes.plot(
        sizes, [p["memcpy_mb_per_s"] for p in alone], color=BLACK, linewidth=1.2, linestyle=":",
        label="copying memory, one core",
    )  # fmt: skip
    for look, num_actors in enumerate(sorted({p["actors"] for p in without})):
        some = sorted(
            (p for p in without if p["actors"] == num_actors), key=lambda p: p["size_bytes"]
        )
        if len(some) > 1:
            at = [p["size_bytes"] for p in some]
            predicted = [p["size_bytes"] * MESSAGES / _predicted_s(p) / 1e6 for p in some]
            label = f"{num_actors} actor{'s' if num_actors > 1 else ''}"
            _draw_pair(axes, look, at, [p["mb_per_s"] for p in some], predicted, label)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(sizes, [size_text(size) for size in sizes], rotation=30)
    axes.set_xlabel("size of a message")
    axes.set_ylabel("megabytes per second")
    axes.set_title("no sample time; thin dashes: the model", fontsize=10, loc="left")


def _draw_actors(axes: Any, points: Sequence[Point]) -> None:
    sampled = {p["size_bytes"] for p in points if p["sample_time_s"] > 0}
    some = [p for p in points if p["size_bytes"] in sampled and not p["copying"]]
    for look, sample_s in enumerate(sorted({p["sample_time_s"] for p in some})):
        line = sorted((p for p in some if p["sample_time_s"] == sample_s), key=_actors)
        measured = [collection_s(p) for p in line]
        label = f"sample time {sample_s * 1e3:g} ms"
        _draw_pair(axes, look, list(map(_actors, line)), measured, map(_predicted_s, line), label)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    ticks = sorted({p["actors"] for p in some})
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_xlabel("actors")
    axes.set_ylabel(f"seconds to collect {MESSAGES:,} messages")
    sizes = ", ".join(size_text(size) for size in sorted(sampled))
    axes.set_title(f"messages of {sizes}; thin dashes: the model", fontsize=10, loc="left")


def _draw_pair(axes: Any, look: int, at: Any, measured: Any, predicted: Any, label: str) -> None:
    color = PALETTE[look]
    axes.plot(at, measured, marker=MARKERS[look], color=color, linewidth=2.0, label=label)
    axes.plot(at, list(predicted), color=color, linewidth=1.0, linestyle=(0, (4, 3)))


def _predicted_s(point: Point) -> float:
    return float(point["predicted_s_per_10k"])


def _actors(point: Point) -> int:
    return int(point["actors"])
