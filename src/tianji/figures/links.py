"""Figures 5 (c) and (d): messages between hosts, by the number of actors and by their size."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tianji.errors import UsageError
from tianji.figures import style
from tianji.figures.files import Data, Point
from tianji.figures.paper.numbers import ETHERNET_MB_PER_S, FALLING_FROM_BYTES
from tianji.figures.transports import (
    COLLECTION_TIME,
    MESSAGES,
    finish_axes,
    finish_values,
    size_text,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = {"link": "our link, in clear", "link-tls": "our link, encrypted"}
COLORS = {"link": style.BLUE, "link-tls": style.RED}
NAMESPACES = "hosts are network namespaces, which share these cores"


def refuse_to_measure(name: str) -> Data:
    """Raise UsageError: hosts of their own need root, and the benchmarks of a checkout."""
    which = name.removeprefix("tianji-")
    raise UsageError(
        f"The data of {name} comes from network namespaces, which need root: sudo .venv/bin/python "
        f"-m benchmarks.links.figure {which}, in a checkout."
    )


def draw_hosts(data: Data) -> Figure:
    """Draw figure 5 (c): collection time by actors, dealt evenly among four hosts."""
    figure = style.new_figure(8.6, 5.4, "Collecting messages of 512 KB from actors on four hosts")
    axes = figure.subplots()
    points: Sequence[Point] = data["points"]
    actors = sorted({point["actors"] for point in points})
    for look, sample_s in enumerate(sorted({point["sample_time_s"] for point in points})):
        some = [point for point in points if point["sample_time_s"] == sample_s]
        color = style.PALETTE[look]
        name = f"sample time {sample_s * 1e3:g} ms"
        _draw_line(axes, some, "actors", lambda p: p["collection_s_per_10k"], color, name)
        ideal_s = [MESSAGES * sample_s / count for count in actors]
        label = None if look else "messages x sample time / actors"
        axes.plot(actors, ideal_s, color=style.BLACK, linewidth=1.1, linestyle=":", label=label)
    finish_axes(axes, "actors on four hosts", {count: str(count) for count in actors})
    finish_values(axes)
    axes.set_ylabel(COLLECTION_TIME)
    messages = points[0]["messages"]
    how = f"{messages:,} messages each time, scaled; encrypted; actor 1 is beside the buffer"
    about = f"{_where(data)}\n{how}"
    style.legend_below(figure, ncols=3, about=about, size=9)
    return figure


def draw_link(data: Data) -> Figure:
    """Draw figure 5 (d): throughput between two hosts by message size, a panel for each line."""
    figure = style.new_figure(12.0, 5.4, "Messages between two hosts, by their size")
    lines = sorted({point["limit_gbit"] or 0.0 for point in data["points"]}, reverse=True)
    panels = figure.subplots(1, len(lines), squeeze=False)[0]
    for axes, gbit in zip(panels, lines, strict=True):
        points = [point for point in data["points"] if (point["limit_gbit"] or 0.0) == gbit]
        sizes = sorted({point["size_bytes"] for point in points if point["size_bytes"]})
        for name, label in NAMES.items():
            some = [point for point in points if point["contestant"] == name]
            _draw_line(axes, some, "size_bytes", lambda p: p["mb_per_s"], COLORS[name], label)
        limits = [point["mb_per_s"] for point in points if point["contestant"] == "iperf3"]
        if limits:
            limit = statistics.median(limits)
            axes.axhline(limit, color=style.BLACK, linewidth=1.2, linestyle=":", label="iperf3")
        _mark_paper(axes, gbit)
        finish_axes(axes, "size of a message", {s: size_text(s) for s in sizes}, rotation=30)
        finish_values(axes)
        line = f"{gbit:g} Gbit/s ({gbit * 125:g} MB/s)" if gbit else "no limit"
        axes.set_title(f"line: {line}", fontsize=11)
    panels[0].set_ylabel("megabytes per second")
    style.legend_below(figure, ncols=3, about=_where(data), size=9)
    return figure


def _mark_paper(axes: Any, gbit: float) -> None:
    """Draw the bandwidth that the paper reaches, and where its throughput falls without a limit."""
    looks: dict[str, Any] = {"color": style.PURPLE, "linewidth": 1.4, "linestyle": (0, (6, 2))}
    if gbit:
        label = f"paper: Ethernet, {ETHERNET_MB_PER_S:g} MB/s"
        axes.axhline(ETHERNET_MB_PER_S, label=label, **looks)
    else:
        label = f"paper: falls after {FALLING_FROM_BYTES >> 10} KB on InfiniBand"
        axes.axvline(FALLING_FROM_BYTES, label=label, **{**looks, "linestyle": (0, (2, 2))})


def _draw_line(
    axes: Any,
    points: Sequence[Point],
    along: str,
    value: Callable[[Point], float],
    color: str,
    label: str,
) -> None:
    """Draw medians as a line and ranges as a band."""
    found: dict[float, list[float]] = defaultdict(list)
    for point in points:
        found[point[along]].append(value(point))
    at = sorted(found)
    low, high = [min(found[x]) for x in at], [max(found[x]) for x in at]
    axes.fill_between(at, low, high, color=color, alpha=0.15, linewidth=0)
    middle = [statistics.median(found[x]) for x in at]
    axes.plot(at, middle, "o-", color=color, linewidth=1.8, markersize=5, label=label)


def _where(data: Data) -> str:
    machine = data["machine"]
    return f"medians and ranges; {machine['cpu']}, {machine['cores']} cores; {NAMESPACES}"
