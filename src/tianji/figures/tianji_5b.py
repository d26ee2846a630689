"""Figure 5 (b) of the paper: how long collecting takes, by the number of actors."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tianji.figures.interface import Wish
from tianji.figures.look import BLACK, new_figure, quieten
from tianji.figures.points import (
    MESSAGES,
    OURS,
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

ABOUT = "collection time by number of actors and sample time, 512 KB (paper 1, figure 5 b)"
OPTIONS = frozenset({"rerun"})
NAME = "tianji-5b"
SIZE_BYTES = 512 << 10


def read(_: Wish) -> dict[str, Any]:
    return read_points(NAME)


def rerun() -> dict[str, Any]:
    from tianji.bench.sweep import measure_actors

    return measured_here(NAME, measure_actors())


def draw(data: Mapping[str, Any]) -> Figure:
    points = [p for p in data["points"] if p["size_bytes"] == SIZE_BYTES]
    sample_times_s = sorted({p["sample_time_s"] for p in points})
    figure = new_figure(12.5, 5.0)
    panels = figure.subplots(1, len(sample_times_s), squeeze=False)[0]
    looks = styles(to_series(points, "actors", collection_s))
    for axes, sample_time_s in zip(panels, sample_times_s, strict=True):
        here = [p for p in points if p["sample_time_s"] == sample_time_s]
        for series in to_series(here, "actors", collection_s):
            draw_series(axes, series, looks[series.transport])
        if sample_time_s > 0:
            _draw_ideal(axes, here)
        _scale(axes, sorted({p["actors"] for p in here}))
        axes.set_title(f"sample time {sample_time_s * 1e3:g} ms", fontsize=11)
    panels[0].set_ylabel(f"seconds to collect {MESSAGES:,} messages")
    figure.suptitle(
        "How long it takes to collect messages of 512 KB, by the number of actors",
        fontsize=13, fontweight="bold", x=0.01, ha="left",
    )  # fmt: skip
    _add_legend(figure, panels, machine_text(data))
    return figure


def _draw_ideal(axes: Any, points: Sequence[Point]) -> None:
    """Messages x sample time / actors, with the sample time as our senders measured it."""
    actors = sorted({p["actors"] for p in points})
    ideal_s = []
    for count in actors:
        ours = [p for p in points if p["actors"] == count and p["transport"] == OURS]
        measured = [p["measured_sample_s"] for p in ours if p.get("measured_sample_s")]
        sample_s = statistics.median(measured) if measured else points[0]["sample_time_s"]
        ideal_s.append(MESSAGES * sample_s / count)
    label = "ideal: messages x sample time / actors"
    axes.plot(actors, ideal_s, color=BLACK, linewidth=1.4, linestyle=":", label=label, zorder=4)


def _add_legend(figure: Figure, panels: Sequence[Any], title: str) -> None:
    known: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            known.setdefault(label, handle)
    figure.legend(
        list(known.values()), list(known), loc="outside lower left", ncols=5, fontsize=9,
        frameon=False, title=title, title_fontproperties={"size": 9.5}, alignment="left",
    )  # fmt: skip


def _scale(axes: Any, actors: Sequence[int]) -> None:
    from matplotlib.ticker import LogLocator, StrMethodFormatter

    quieten(axes)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(actors, [str(count) for count in actors])
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.minorticks_off()
    axes.yaxis.minorticks_off()
    axes.set_xlabel("actors")
