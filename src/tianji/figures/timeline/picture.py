"""Figure 1 of the paper for runs of our own: what every role did when, and its idle share."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tianji.figures import style
from tianji.figures.files import Data
from tianji.figures.timeline.excerpt import IDLE, Excerpt, Row
from tianji.figures.timeline.runs import excerpt_of
from tianji.trace.read import Arrow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEGEND = {
    "infer": ("① infer", style.SKY),
    "step": ("② simulate a step", style.BLUE),
    "update": ("③ update", style.RED),
    "write": ("begin or hand over an unroll", style.GREEN),
    "receive": ("receive", style.ORANGE),
    "take": ("put a batch together", style.YELLOW),
    "publish": ("publish a policy", style.PURPLE),
    "pick up": ("pick up a policy", "#8b3a78"),
    "save": ("save", style.BLACK),
    "paced": ("idle: waits to begin", "#d1d5db"),
    "wait": ("idle: nothing to do", "#eceef1"),
}
_ARROWS: dict[str, tuple[str, Any]] = {
    "item": (style.GREEN, "solid"),
    "policy": (style.PURPLE, (0, (4, 2))),
}
_MAX_ARROWS = 6
_BAR, _IDLE_BAR = 0.62, 0.3  # heights, where rows are 1 apart
_LEAST_SHARE = 1 / 600  # share of the window: a shorter span is drawn this wide


def draw_run(run: str, from_s: float | None, for_s: float | None) -> Figure:
    """Draw a run of this name or path; without a window, choose one."""
    return draw([excerpt_of(run, from_s, for_s)])


def draw_kept(data: Data) -> Figure:
    """Draw the excerpts of several runs below each other."""
    names = [f"{point['name']}\n" for point in data["points"]]
    return draw([Excerpt.from_data(point) for point in data["points"]], names)


def draw(excerpts: Sequence[Excerpt], names: Sequence[str] = ("",)) -> Figure:
    """Draw a panel for each excerpt, a row for each of its roles. names: stand above the panels."""
    heights = [len(excerpt.rows) for excerpt in excerpts]
    title = "What every role did when, and how much of the whole run it was idle"
    height = 1.2 + 0.7 * len(excerpts) + 0.72 * sum(heights)
    figure = style.new_figure(12.5, height, title)
    panels = figure.subplots(len(excerpts), 1, height_ratios=heights, squeeze=False)[:, 0]
    done = {span.name for excerpt in excerpts for row in excerpt.rows for span in row.spans}
    shown = [name for name in LEGEND if name in done]
    for axes, excerpt, name in zip(panels, excerpts, names, strict=True):
        _draw_excerpt(axes, excerpt, shown)
        style.subtitle(axes, f"{name}{excerpt.about}", 9.5)
    _add_legend(figure, shown, excerpts[0].items_end)
    return figure


def _draw_excerpt(axes: Any, excerpt: Excerpt, shown: Sequence[str]) -> None:
    roles = [row.role for row in excerpt.rows]
    for place, row in enumerate(excerpt.rows):
        axes.axhline(place, color=style.GRID, linewidth=0.8, zorder=0)
        for name in shown:
            _draw_spans(axes, excerpt, row, place, name)
        _label_idle(axes, row, place)
    for name in _ARROWS:
        for arrow in _some([arrow for arrow in excerpt.arrows if arrow.name == name]):
            _draw_arrow(axes, excerpt, arrow, roles)
    _finish_axes(axes, excerpt, roles)


def _draw_spans(axes: Any, excerpt: Excerpt, row: Row, place: int, name: str) -> None:
    window = excerpt.window
    least_ms = window.length_s * 1e3 * _LEAST_SHARE
    bars = []
    for span in row.spans:
        if span.name == name:
            start_ms = excerpt.to_ms(max(span.start_s, window.start_s))
            end_ms = excerpt.to_ms(min(span.end_s, window.end_s))
            bars.append((start_ms, max(end_ms - start_ms, least_ms)))
    height = _IDLE_BAR if name in IDLE else _BAR
    hatch = "////" if name == "paced" else None
    axes.broken_barh(
        bars, (place - height / 2, height), facecolors=LEGEND[name][1], edgecolor="white",
        linewidth=0.0, hatch=hatch, zorder=2,
    )  # fmt: skip


def _label_idle(axes: Any, row: Row, place: int) -> None:
    at: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "annotation_clip": False}
    axes.annotate(
        f"idle {row.idle_share * 100:.0f} %", (1.012, place), xytext=(0, 1),
        textcoords="offset points", va="bottom", fontsize=11, fontweight="bold",
        color=style.BLACK, **at,
    )  # fmt: skip
    axes.annotate(
        row.why_idle, (1.012, place), xytext=(0, -1), textcoords="offset points",
        va="top", fontsize=8.5, color=style.QUIET, **at,
    )  # fmt: skip


def _some(arrows: Sequence[Arrow]) -> Sequence[Arrow]:
    """Return a few arrows, spread over the window: more would hide the spans."""
    ordered = sorted(arrows, key=lambda arrow: arrow.touches[0].at_s)
    step = -(-len(ordered) // _MAX_ARROWS) or 1
    return ordered[::step]


def _draw_arrow(axes: Any, excerpt: Excerpt, arrow: Arrow, roles: Sequence[str]) -> None:
    color, dashes = _ARROWS[arrow.name]
    points = [(excerpt.to_ms(t.at_s), roles.index(t.role)) for t in arrow.touches]
    for number, (start, end) in enumerate(itertools.pairwise(points)):
        down = (end[1] > start[1]) - (end[1] < start[1])  # 0 within one row: along its middle
        is_last = number == len(points) - 2
        axes.annotate(
            "", (end[0], end[1] - down * _BAR / 2), (start[0], start[1] + down * _BAR / 2),
            arrowprops={
                "arrowstyle": "-|>" if is_last else "-", "color": color, "linewidth": 1.3,
                "linestyle": dashes, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 10,
            },
            zorder=4,
        )  # fmt: skip


def _finish_axes(axes: Any, excerpt: Excerpt, roles: Sequence[str]) -> None:
    window = excerpt.window
    style.quieten(axes)
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    axes.set_yticks(range(len(roles)), roles, fontsize=11)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(roles) - 0.45, -0.55)
    axes.set_xlim(0, window.length_s * 1e3)
    axes.set_xlabel(f"milliseconds, from {window.start_s:.3f} s of the trace on", fontsize=9)


def _add_legend(figure: Figure, shown: Sequence[str], goal: str) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    patches: list[Any] = [
        Patch(
            facecolor=LEGEND[name][1], edgecolor="white" if name == "paced" else "none",
            hatch="////" if name == "paced" else None, label=LEGEND[name][0],
        )
        for name in shown
    ]  # fmt: skip
    texts = {"item": f"an item, from actor to {goal}", "policy": "a policy, from learner to actor"}
    for name, (color, dashes) in _ARROWS.items():
        patches.append(Line2D([], [], color=color, linestyle=dashes, label=texts[name]))
    figure.legend(
        handles=patches, loc="outside lower left", ncols=5, fontsize=9, frameon=False,
        handlelength=1.6, columnspacing=1.6, alignment="left",
    )  # fmt: skip
