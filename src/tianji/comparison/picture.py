"""The picture of a comparison: returns, certainty, throughput, lag and idle shares."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from tianji.comparison.outcomes import RunFigures, is_finished
from tianji.comparison.report import Comparison, Estimated, StyleFigures, certainty
from tianji.display.curve import Point, on_one_grid
from tianji.figures import style
from tianji.ops.claims import ENOUGH_SEEDS
from tianji.ops.scores import estimate_iqm
from tianji.wording import counted, to_count

PICTURE_FILE = "comparison.png"
Colors: TypeAlias = Mapping[str, str]
Find: TypeAlias = Callable[[StyleFigures], float | None]
_LABELLED = 8
"""With more bars, numbers above them would touch each other, and are turned."""
CURVE_DRAWS = 500
"""Draws of the bootstrap at each point of a curve; enough for the eye."""
ABOUT_WIDTH = 210
"""Characters of a line below the panels."""


class _Better(NamedTuple):
    """How a probability is drawn, and what it is of."""

    marker: str
    words: str


_BETTER = {
    "time_to_target_s": _Better("o", "circle: sooner at the target"),
    "final_return": _Better("s", "square: higher return"),
}


def draw(report: Comparison, path: Path) -> None:
    """Draw all panels; styles without a finished run are left out."""
    styles = [one for one in report["styles"] if one["seeds"]]
    names = [one["style"] for one in report["styles"]]
    palette = (style.PALETTE[place % len(style.PALETTE)] for place in range(len(names)))
    colors = dict(zip(names, palette, strict=True))
    title = f"{report['env']}: {names[0]} against {', '.join(names[1:])}"
    figure = style.new_figure(12.6, 7.6, title)
    panels = figure.subplots(2, 3)
    _draw_returns(panels[0, 0], report, colors, "wall_s", "seconds of training")
    _draw_returns(panels[0, 1], report, colors, "env_steps", "environment steps")
    _draw_certainty(panels[0, 2], report, styles, colors)
    _draw_throughput(panels[1, 0], styles, colors)
    _draw_bars(panels[1, 1], styles, colors, "lag, versions", "{:.2f}", _LAG)
    _draw_bars(panels[1, 2], styles, colors, "idle share of the time", "{:.0%}", _IDLE)
    style.legend_below(figure, ncols=8, about=_about(report))
    style.save(figure, path)


def _about(report: Comparison) -> str:
    machine, num_seeds = report["machine"], len(report["seeds"])
    few = " (too few for a claim)" if num_seeds < ENOUGH_SEEDS else ""
    about = (
        f"{machine['cpu']}, {counted(machine['cores'], 'core')}, one run at a time, "
        f"{counted(num_seeds, 'seed')}{few}. Lines: interquartile mean over seeds; bands: 95 % "
        "stratified bootstrap interval; runs that have ended keep their last value. "
        f"Commit {report['commit']}, {report['time'][:10]}: {report['command']}"
    )
    return textwrap.fill(about, ABOUT_WIDTH)


def _draw_returns(
    axes: Any,
    report: Comparison,
    colors: Colors,
    along: Literal["wall_s", "env_steps"],
    label: str,
) -> None:
    from matplotlib.ticker import EngFormatter

    found_curves = _curves(report["runs"])
    for name in [name for name in colors if name in found_curves]:
        curves = found_curves[name]
        places, returns = on_one_grid(curves, along)
        found = estimate_iqm([returns], CURVE_DRAWS)
        looks = {"color": colors[name], "linewidth": 1.8, "label": name}
        # A line through one point would not be seen.
        axes.plot(places, found.value, marker="o" if places[0] == places[-1] else None, **looks)
        if found.low is not None and found.high is not None:
            band = {"color": colors[name], "alpha": 0.18, "linewidth": 0}
            axes.fill_between(places, found.low, found.high, **band)
    if (target := report["target_return"]) is not None:
        axes.axhline(target, color=style.QUIET, linewidth=1, linestyle=(0, (5, 4)))
    style.quieten(axes)
    axes.set(xlabel=label, xlim=(0, None))
    axes.locator_params(axis="x", nbins=6)
    if along == "env_steps":
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    _name(axes, "mean return of the last 100 episodes")


def _curves(runs: Sequence[RunFigures]) -> dict[str, list[list[Point]]]:
    found: dict[str, list[list[Point]]] = {}
    for run in runs:
        if is_finished(run) and run["curve"]:
            found.setdefault(run["style"], []).append([Point(*point) for point in run["curve"]])
    return found


def _draw_certainty(
    axes: Any, report: Comparison, styles: Sequence[StyleFigures], colors: Colors
) -> None:
    """Draw the probability that the reference is better than each of the others: by the time to
    the target if runs reach it, because they stop there, else by the return."""
    found = {one["style"]: sure for one in styles if (sure := certainty(one)) is not None}
    for place, (name, sure) in enumerate(found.items()):
        _draw_interval(axes, place, sure.probability, colors[name], _BETTER[sure.by].marker)
    axes.axvline(0.5, color=style.QUIET, linewidth=1, linestyle=(0, (5, 4)))
    style.quieten(axes)
    axes.set(xlim=(-0.03, 1.03), ylim=(max(1, len(found)) - 0.5, -0.5))
    axes.set_yticks(range(len(found)), list(found))
    drawn = {sure.by for sure in found.values()}
    axes.set_xlabel("; ".join(_BETTER[by].words for by in _BETTER if by in drawn), fontsize=9)
    _name(axes, f"probability that {report['reference']} is better")


def _draw_interval(axes: Any, height: float, found: Estimated, color: str, marker: str) -> None:
    if found["value"] is None:
        return
    if found["low"] is not None and found["high"] is not None:
        axes.plot([found["low"], found["high"]], [height, height], color=color, linewidth=2.2)
    axes.plot(found["value"], height, marker, color=color, markersize=6, clip_on=False)


def _draw_throughput(axes: Any, styles: Sequence[StyleFigures], colors: Colors) -> None:
    """Draw rates as multiples of those of the reference; the numbers are steps per second."""
    rates: dict[str, Find] = {
        "produced": lambda one: one["rates_per_s"]["produced"],
        "received": lambda one: one["rates_per_s"]["received"],
        "trained": lambda one: one["rates_per_s"]["trained"],
    }
    base = {name: find(styles[0]) or 1.0 for name, find in rates.items()}
    for group, (name, find) in enumerate(rates.items()):
        for place, one in enumerate(styles):
            rate = find(one) or 0.0
            spot = _spot(group, place, len(styles))
            axes.bar(spot, rate / base[name], _width(len(styles)), color=colors[one["style"]])
            _label(axes, spot, rate / base[name], to_count(rate), len(styles) * len(rates))
    _finish_bars(axes, list(rates))
    axes.set_ylabel(f"times {styles[0]['style']}'s", fontsize=9)
    _name(axes, "throughput, steps per second")


def _idle(busy_share: float | None) -> float | None:
    return None if busy_share is None else max(0.0, 1 - busy_share)


_LAG: Mapping[str, Find] = {
    "mean": lambda one: one["lag_versions"]["mean"],
    "95th percentile": lambda one: one["lag_versions"]["p95"],
}
_IDLE: Mapping[str, Find] = {
    "actors": lambda one: _idle(one["actors"]["busy_share"]),
    "learner": lambda one: _idle(one["learner"]["busy_share"]),
}


def _draw_bars(
    axes: Any,
    styles: Sequence[StyleFigures],
    colors: Colors,
    title: str,
    shown: str,
    groups: Mapping[str, Find],
) -> None:
    for group, find in enumerate(groups.values()):
        for place, one in enumerate(styles):
            value, spot = find(one), _spot(group, place, len(styles))
            if value is not None:
                axes.bar(spot, value, _width(len(styles)), color=colors[one["style"]])
                _label(axes, spot, value, shown.format(value), len(styles) * len(groups))
    _finish_bars(axes, list(groups))
    _name(axes, title)


def _width(count: int) -> float:
    return 0.8 / count


def _spot(group: int, place: int, count: int) -> float:
    return group + (place - (count - 1) / 2) * _width(count)


def _label(axes: Any, spot: float, height: float, text: str, num_bars: int) -> None:
    turned = 90 if num_bars > _LABELLED else 0
    axes.annotate(
        text, (spot, height), (0, 3), textcoords="offset points", ha="center", va="bottom",
        fontsize=7.5, rotation=turned, color=style.BLACK,
    )  # fmt: skip


def _finish_bars(axes: Any, names: Sequence[str]) -> None:
    style.quieten(axes)
    axes.grid(visible=False, axis="x")
    axes.set_xticks(range(len(names)), names)
    axes.margins(y=0.18)


def _name(axes: Any, title: str) -> None:
    axes.set_title(title, fontsize=10, loc="left")
