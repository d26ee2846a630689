"""Figure 5 (a) of the paper: how fast one actor's messages are collected, by their size."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tianji.figures.interface import Wish
from tianji.figures.look import BLACK, QUIET, new_figure, quieten
from tianji.figures.points import (
    MESSAGES,
    Point,
    collection_s,
    draw_series,
    machine_text,
    measured_here,
    read_points,
    styles,
    to_series,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ABOUT = "throughput and collection time by message size, all transports (paper 1, figure 5 a)"
OPTIONS = frozenset({"rerun"})
NAME = "tianji-5a"
_TICK_RATIO = 4  # closer ones would run into each other
_UNITS = ((1 << 20, "MB"), (1 << 10, "KB"))


def read(_: Wish) -> dict[str, Any]:
    return read_points(NAME)


def rerun() -> dict[str, Any]:
    from tianji.bench.sweep import measure_sizes

    return measured_here(NAME, measure_sizes())


def draw(data: Mapping[str, Any]) -> Figure:
    points = [p for p in data["points"] if p["actors"] == 1 and p["sample_time_s"] == 0]
    figure = new_figure(12.5, 5.4)
    left, right = figure.subplots(1, 2)
    throughput = to_series(points, "size_bytes", lambda point: float(point["mb_per_s"]))
    looks = styles(throughput)
    for series in throughput:
        draw_series(left, series, looks[series.transport])
    for series in to_series(points, "size_bytes", collection_s):
        draw_series(right, series, looks[series.transport])
    _draw_limit(left, right, points)
    left.set_ylabel("megabytes per second")
    right.set_ylabel(f"seconds to collect {MESSAGES:,} messages")
    for axes in (left, right):
        _scale(axes, sorted({p["size_bytes"] for p in points}))
    figure.suptitle(
        "How fast the messages of one actor are collected, by their size",
        fontsize=13, fontweight="bold", x=0.01, ha="left",
    )  # fmt: skip
    left.set_title(machine_text(data), fontsize=9.5, color=QUIET, loc="left", pad=8)
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=5, fontsize=9, frameon=False)
    return figure


def _draw_limit(left: Any, right: Any, points: Sequence[Point]) -> None:
    """What one core can copy: nothing that copies once is faster."""
    measured = [p for p in points if p.get("memcpy_mb_per_s")]
    sizes = sorted({p["size_bytes"] for p in measured})
    limit = [
        statistics.median(p["memcpy_mb_per_s"] for p in measured if p["size_bytes"] == size)
        for size in sizes
    ]
    times_s = [MESSAGES * size / (speed * 1e6) for size, speed in zip(sizes, limit, strict=True)]
    for axes, values in ((left, limit), (right, times_s)):
        label = "copying memory, one core" if axes is left else None
        axes.plot(sizes, values, color=BLACK, linewidth=1.2, linestyle=":", label=label)


def _scale(axes: Any, sizes: Sequence[int]) -> None:
    quieten(axes)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    ticks = [sizes[0]]
    for size in sizes:
        if size >= _TICK_RATIO * ticks[-1]:
            ticks.append(size)
    axes.set_xticks(ticks, [size_text(size) for size in ticks])
    axes.minorticks_off()
    axes.set_xlabel("size of a message")


def size_text(size_bytes: int) -> str:
    """`512 KB`, as the paper writes sizes."""
    for unit, name in _UNITS:
        if size_bytes >= unit:
            return f"{size_bytes / unit:.4g} {name}"
    return f"{size_bytes} B"
