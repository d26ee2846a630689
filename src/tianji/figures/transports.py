"""Figures 5 (a) and (b): how fast messages are collected, by their size and by actors."""

from __future__ import annotations

import itertools
import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tianji.figures import style
from tianji.figures.files import Data, Point
from tianji.figures.paper.numbers import SATURATED
from tianji.figures.peers import channels_beside

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OURS = "tianji"
NAMES = {
    OURS: "tianji (ours)",
    "ray": "ray (RLlib)",
    "xingtian": "XingTian's channel *",
    "authors-hiprlcomm": "TianJi authors' channel *",
    "authors-pickled": "TianJi authors, pickled *",
}
_APART_LOOKS = {
    "xingtian": (style.BLACK, "p"),
    "authors-hiprlcomm": ("#7c2d12", "d"),
    "authors-pickled": ("#be185d", "H"),
}
_APART = "* measured apart, one run each, and the receiver copies"
MESSAGES = 10_000  # collection times are given for this many
COLLECTION_TIME = f"seconds to collect {MESSAGES:,} messages"
_ACTORS_SIZE_BYTES = 512 << 10
_TICK_RATIO = 4  # closer ticks would overlap
_UNITS = ((1 << 20, "MB"), (1 << 10, "KB"))


class Measured(NamedTuple):
    """One value at several repeats."""

    at: float
    low: float
    middle: float
    high: float


@dataclass(frozen=True, slots=True)
class Series:
    """The line of one transport."""

    transport: str
    copying: bool
    values: list[Measured]

    @property
    def label(self) -> str | None:
        """Name every transport once, whether its receiver copies or not."""
        return None if self.copying else NAMES.get(self.transport, self.transport)


def measure_sizes() -> Data:
    from tianji.bench import sweep

    return {"points": sweep.measure_sizes()}


def measure_actors() -> Data:
    from tianji.bench import sweep

    return {"points": sweep.measure_actors()}


def draw_sizes(data: Data) -> Figure:
    """Draw figure 5 (a): throughput and collection time of one actor by message size."""
    points = [p for p in _all(data) if p["actors"] == 1 and p["sample_time_s"] == 0]
    figure = style.new_figure(
        12.5, 5.4, "How fast the messages of one actor are collected, by their size"
    )
    left, right = figure.subplots(1, 2)
    _draw_transports(left, to_series(points, "size_bytes", lambda p: float(p["mb_per_s"])))
    _draw_transports(right, to_series(points, "size_bytes", collection_s))
    _draw_limit(left, right, points)
    left.set_ylabel("megabytes per second")
    right.set_ylabel(COLLECTION_TIME)
    ticks: list[int] = []
    for size in sorted({p["size_bytes"] for p in points}):
        if not ticks or size >= _TICK_RATIO * ticks[-1]:
            ticks.append(size)
    for axes in (left, right):
        finish_axes(axes, "size of a message", {size: size_text(size) for size in ticks})
    style.legend_below(figure, ncols=5, about=_provenance(data), size=9.5)
    return figure


def draw_actors(data: Data) -> Figure:
    """Draw figure 5 (b): collection time by actors, a panel for each sample time."""
    points = [p for p in _all(data) if p["size_bytes"] == _ACTORS_SIZE_BYTES]
    sample_times_s = sorted({p["sample_time_s"] for p in points})
    figure = style.new_figure(
        12.5, 5.0, "How long it takes to collect messages of 512 KB, by the number of actors"
    )
    panels = figure.subplots(1, len(sample_times_s), squeeze=False)[0]
    styles = _styles(to_series(points, "actors", collection_s))
    for axes, sample_time_s in zip(panels, sample_times_s, strict=True):
        here = [p for p in points if p["sample_time_s"] == sample_time_s]
        _draw_transports(axes, to_series(here, "actors", collection_s), styles)
        if sample_time_s > 0:
            _draw_ideal(axes, here)
        else:
            _name_copying(axes, here)
        finish_axes(axes, "actors", {n: str(n) for n in sorted({p["actors"] for p in here})})
        finish_values(axes)
        axes.set_title(_panel_title(sample_time_s), fontsize=10)
    panels[0].set_ylabel(COLLECTION_TIME)
    style.legend_below(figure, ncols=5, about=_provenance(data), size=9.5)
    return figure


def _all(data: Data) -> list[Point]:
    """Return the points of the data, and those of systems that were measured apart."""
    return [*data["points"], *channels_beside(data)]


def to_series(points: Sequence[Point], along: str, value: Callable[[Point], float]) -> list[Series]:
    """Return medians and ranges by transport, ours first, the others by name."""
    found: dict[tuple[str, bool], dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for point in points:
        found[point["transport"], bool(point["copying"])][point[along]].append(value(point))
    made = [
        Series(
            transport,
            # The label says that a receiver copies only where another one does not.
            copying and (transport, False) in found,
            [
                Measured(at, min(values), statistics.median(values), max(values))
                for at, values in sorted(by_place.items())
            ],
        )
        for (transport, copying), by_place in found.items()
    ]
    return sorted(made, key=lambda s: (s.transport != OURS, s.transport, s.copying))


def collection_s(point: Point) -> float:
    return float(point["collection_s_per_10k"])


def finish_axes(axes: Any, label: str, ticks: dict[int, str], **tick_style: Any) -> None:
    """Make both axes logarithmic, with these ticks along x."""
    style.quieten(axes)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(list(ticks), list(ticks.values()), **tick_style)
    axes.minorticks_off()
    axes.set_xlabel(label)


def finish_values(axes: Any) -> None:
    """Write 1, 2, 5, 10 ... instead of powers of ten alone: the range is small."""
    from matplotlib.ticker import LogLocator, StrMethodFormatter

    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))


def size_text(size_bytes: int) -> str:
    """Return `512 KB`, as the paper writes sizes."""
    for unit, name in _UNITS:
        if size_bytes >= unit:
            return f"{size_bytes / unit:.4g} {name}"
    return f"{size_bytes} B"


def _styles(series: Sequence[Series]) -> dict[str, tuple[str, str]]:
    """Return a colour and a marker for every transport."""
    others = sorted({s.transport for s in series} - {OURS} - set(_APART_LOOKS))
    looks = itertools.cycle(zip(style.PALETTE[1:], style.MARKERS[1:], strict=True))
    ours = {OURS: (style.BLUE, style.MARKERS[0])}
    return {**ours, **_APART_LOOKS, **dict(zip(others, looks, strict=False))}


def _draw_transports(
    axes: Any, series: Sequence[Series], styles: dict[str, tuple[str, str]] | None = None
) -> None:
    """Draw medians as lines and ranges as bands; ours is the thick one."""
    styles = styles or _styles(series)
    for one in series:
        color, marker = styles[one.transport]
        ours = one.transport == OURS
        at, low, middle, high = zip(*one.values, strict=True)
        axes.fill_between(at, low, high, color=color, alpha=0.18, linewidth=0)
        axes.plot(
            at, middle, marker=marker, color=color, label=one.label,
            linewidth=2.6 if ours else 1.3, markersize=6 if ours else 4.5,
            linestyle=_dashes(one), zorder=3 if ours else 2,
        )  # fmt: skip


def _dashes(series: Series) -> Any:
    if series.transport in _APART_LOOKS:
        return "-."
    return (0, (4, 2)) if series.copying else "solid"


def _draw_limit(left: Any, right: Any, points: Sequence[Point]) -> None:
    """Draw how fast one core copies memory: nothing that copies once is faster."""
    speeds: dict[int, list[float]] = defaultdict(list)
    for point in points:
        if point.get("memcpy_mb_per_s"):
            speeds[point["size_bytes"]].append(point["memcpy_mb_per_s"])
    sizes = sorted(speeds)
    limit = [statistics.median(speeds[size]) for size in sizes]
    times_s = [MESSAGES * size / (speed * 1e6) for size, speed in zip(sizes, limit, strict=True)]
    for axes, values in ((left, limit), (right, times_s)):
        label = "copying memory, one core" if axes is left else None
        axes.plot(sizes, values, color=style.BLACK, linewidth=1.2, linestyle=":", label=label)


def _name_copying(axes: Any, points: Sequence[Point]) -> None:
    """Name dashes in the legend, if there are any."""
    if len({p["copying"] for p in points if p["transport"] == OURS}) > 1:
        dashes = (0, (4, 2))
        axes.plot([], [], color=style.QUIET, linestyle=dashes, label="dashed: receiver copies")


def _panel_title(sample_time_s: float) -> str:
    """Name the sample time, and from how many actors on the paper has a bottleneck with it."""
    actors = SATURATED.get(sample_time_s)
    paper = f" (paper: bottleneck {actors})" if actors else ""
    return f"sample time {sample_time_s * 1e3:g} ms{paper}"


def _draw_ideal(axes: Any, points: Sequence[Point]) -> None:
    """Draw messages x sample time / actors, with the sample time as our senders measured it."""
    actors = sorted({p["actors"] for p in points})
    ideal_s = []
    for count in actors:
        ours = [p for p in points if p["actors"] == count and p["transport"] == OURS]
        measured = [p["measured_sample_s"] for p in ours if p.get("measured_sample_s")]
        sample_s = statistics.median(measured) if measured else points[0]["sample_time_s"]
        ideal_s.append(MESSAGES * sample_s / count)
    label = "ideal: messages x sample time / actors"
    axes.plot(
        actors, ideal_s, color=style.BLACK, linewidth=1.4, linestyle=":", label=label, zorder=4
    )


def _provenance(data: Data) -> str:
    machine = data["machine"]
    about = (
        f"medians and ranges; {machine['cpu']}, {machine['cores']} cores; "
        f"tianji {data['versions'].get('tianji', '')} ({data['commit']})"
    )
    return f"{about}; {_APART}" if channels_beside(data) else about
