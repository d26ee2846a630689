"""Figures 4 (c), 4 (d) and 6 (c): groups on one machine, and simulated on more of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tianji.figures import style
from tianji.figures.estimates import INTERQUARTILE, band, few_seeds
from tianji.figures.files import Data, Point
from tianji.figures.groups.runs import trained_per_step
from tianji.figures.groups.summary import (
    DQN,
    PPO,
    Spread,
    by_groups,
    combines_of,
    fewest_seeds,
    first_combine,
    median,
    points_of,
    rate_of,
    rated_of,
    simulated_of,
    timed_of,
)
from tianji.figures.paper.numbers import NODES
from tianji.figures.peers import fastest, trained_beside
from tianji.types import Array
from tianji.wording import counted, to_count

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLORS = {"average": style.BLUE, "gossip": style.GREEN, "gradients": style.RED}
WIDTHS = {"average": 3.4, "gossip": 1.5, "gradients": 1.5}
"""The first is broad, so that lines that coincide can both be seen."""
NAMES = {PPO: "PPO, CartPole", DQN: "DQN, CartPole"}
STEPS_PER_S = "environment steps per second"
MACHINES = (NODES, 8 * NODES)
"""Simulated machines that are named: as many as the paper has, and eight times as many."""
_PEER_LOOKS: dict[str, Any] = {"color": style.QUIET, "linestyle": "-.", "linewidth": 1.0}


def draw_final_times(data: Data) -> Figure:
    """Draw figure 4 (c): seconds to the target by groups, and training throughput."""
    figure = style.new_figure(13.0, 5.4, "More groups: time to a return of 300, and throughput")
    left, middle, right = figure.subplots(1, 3)
    timed = [point for preset in (PPO, DQN) for point in timed_of(data, preset)]
    for axes, preset in ((left, PPO), (middle, DQN)):
        _draw_times(axes, timed_of(data, preset), NAMES[preset])
    _draw_peers(left, data)
    left.set_ylabel(f"seconds to a mean return of {data['target']:g}")
    _draw_rates(right, data, DQN, "trained")
    right.set_title(f"{NAMES[DQN]}: throughput", fontsize=11)
    right.set_ylabel(f"{STEPS_PER_S} trained on")
    about = (
        f"Times: {_seeds(timed)}; one group is the mean of each seed's runs, if all of them "
        f"reached it. Throughput: {_seeds(rated_of(data, DQN))}"
    )
    style.legend_below(figure, ncols=6, about=f"{_machines(data)}.\n{about}", size=9)
    return figure


def draw_returns(data: Data) -> Figure:
    """Draw figure 4 (d): returns over time by groups, and what the machine does."""
    figure = style.new_figure(12.0, 5.2, "Returns over time and throughput by groups (PPO)")
    left, right = figure.subplots(1, 2)
    points = points_of(data, PPO)
    combine = first_combine(points)
    drawn = [point for point in points if point["combine"] == combine]
    counts = sorted({point["groups"] for point in drawn})
    for look, count in enumerate(counts):
        runs = [point for point in drawn if point["groups"] == count]
        _draw_curves(left, runs, style.PALETTE[look], counted(count, "group"))
    style.quieten(left)
    left.set(xlabel="seconds of training", ylabel="mean return of the last 100 episodes")
    left.set(xlim=(0, None), ylim=(0, None))
    left.axhline(data["target"], color=style.QUIET, linewidth=0.8, linestyle=":")
    _draw_bars(right, data, counts)
    about = (
        f"Curves: {_seeds(drawn)}, from the time on at which all runs have a point. "
        f"Bars: {_seeds([point for point in drawn if 'rates' in point])}. Combined by {combine}"
    )
    style.legend_below(figure, ncols=6, about=f"{_machines(data)}.\n{about}", size=9)
    return figure


def draw_groups(data: Data) -> Figure:
    """Draw figure 6 (c): rates by groups on one machine, and simulated on 1 to 256 of them."""
    figure = style.new_figure(12.0, 5.4, "Groups carry on where one learner ends")
    left, right = figure.subplots(1, 2)
    points = rated_of(data, DQN)
    counts = sorted({point["groups"] for point in points})
    first = median([p["rates"]["received"] for p in points if p["groups"] == counts[0]])
    _draw_ideal(left, counts, first / counts[0])
    ratio = trained_per_step(DQN)
    for combine in combines_of(points):
        for kind, look, scale in (("received", "o-", 1.0), ("trained", "+", ratio)):
            rates = by_groups(points, combine, partial(rate_of, kind, scale))
            _draw_spread(left, rates, combine, look)
    left.plot([], [], "+", color=style.QUIET, label="trained on, over the ratio")
    style.quieten(left)
    left.set(xlim=(0, None), ylim=(0, None), xlabel="groups on one machine, real runs")
    left.set_xticks(counts)
    left.yaxis.set_major_formatter("{x:,g}")
    left.set_ylabel(STEPS_PER_S)
    _draw_rates(right, data, DQN, "received")
    right.set_ylabel(f"received {STEPS_PER_S}")
    about = f"DQN, CartPole. {_machines(data)}.\nReal runs: {_seeds(points)}"
    style.legend_below(figure, ncols=4, about=about, size=9)
    return figure


def _machines(data: Data) -> str:
    """Say on what machine the points were measured, and which machines are simulated."""
    machine = data["machine"]
    cores = counted(data["cores_per_group"], "core")
    return (
        f"Real: {machine['cpu']}, {machine['cores']} cores, {cores} for each group; {INTERQUARTILE}"
        ". Simulated: machines like it, links of 10 Gbit/s"
    )


def _seeds(points: Sequence[Point]) -> str:
    """Say how many seeds these points have, and whether they support a claim."""
    fewest = fewest_seeds(points)
    return few_seeds(fewest) or f"{counted(fewest, 'seed')} each"


def _draw_spread(axes: Any, spread: Spread, combine: str, look: str) -> None:
    at, color = list(spread), COLORS[combine]
    ends = [(each.low, each.value, each.high) for each in spread.values()]
    low, middle, high = np.array(ends).reshape(-1, 3).T
    label = None
    if "-" in look:
        axes.fill_between(at, low, high, color=color, alpha=0.13, linewidth=0)
        label = combine
    width = WIDTHS[combine]
    axes.plot(at, middle, look, color=color, label=label, linewidth=width, markersize=4 + 2 * width)


def _draw_simulated(axes: Any, at: list[int], values: list[float], combine: str) -> None:
    width = WIDTHS[combine]
    axes.plot(
        at, values, "o", color=COLORS[combine], linestyle=(0, (4, 2)), fillstyle="none",
        linewidth=width, markersize=3 + 2 * width, label=f"{combine}, simulated",
    )  # fmt: skip


def _draw_times(axes: Any, points: Sequence[Point], name: str) -> None:
    limit = max(point["seconds"] for point in points)
    for combine in combines_of(points):
        times = by_groups(points, combine, lambda point: point["time_to_target_s"])
        known = {
            count: found._replace(high=min(found.high, limit))
            for count, found in times.items()
            if math.isfinite(found.value)
        }
        _draw_spread(axes, known, combine, "o-")
        _draw_runs(axes, [point for point in points if point["combine"] == combine], combine)
    style.quieten(axes)
    axes.set(xlim=(0, None), ylim=(0, None), xlabel="groups on one machine; runs that reached it")
    counts = sorted({point["groups"] for point in points})
    reached = {n: _reached([point for point in points if point["groups"] == n]) for n in counts}
    axes.set_xticks(counts, [f"{count}\n{text}" for count, text in reached.items()])
    few = few_seeds(fewest_seeds(points))
    said = f"{name}: {_reached(points)} runs reached it"
    axes.set_title("\n".join(filter(None, (said, few))), fontsize=11)


def _draw_runs(axes: Any, points: Sequence[Point], combine: str) -> None:
    """Draw a dot for each run that reached the target."""
    known = [point for point in points if point["time_to_target_s"] is not None]
    at, seconds = ([point[key] for point in known] for key in ("groups", "time_to_target_s"))
    axes.plot(at, seconds, ".", color=COLORS[combine], alpha=0.6, markersize=5)


def _reached(points: Sequence[Point]) -> str:
    reached = sum(point["time_to_target_s"] is not None for point in points)
    return f"{reached} of {len(points)}"


def _draw_peers(axes: Any, data: Data) -> None:
    """Draw how long other systems took, on a logarithmic axis: they took much longer."""
    known = fastest(trained_beside(data))
    seconds = [row.seconds for row in known if row.seconds is not None]
    if not seconds:
        return
    axes.set_yscale("log")
    axes.set_ylim(0.2, 3 * max(seconds))
    axes.yaxis.set_major_formatter("{x:g}")
    for row in known:
        text = f"{row.system}, {row.algorithm}: {row.how_long}"
        if row.seconds is None:
            axes.text(0.02, 0.95, text, transform=axes.transAxes, fontsize=8)
            continue
        axes.axhline(row.seconds, **_PEER_LOOKS)
        axes.annotate(
            text, (0.02, row.seconds), xycoords=("axes fraction", "data"),
            xytext=(0, -3 if row is known[0] else 2), textcoords="offset points", fontsize=8,
            va="top" if row is known[0] else "bottom", color=style.BLACK,
        )  # fmt: skip
    axes.plot([], [], label="others, settings of their own", **_PEER_LOOKS)


def _draw_rates(axes: Any, data: Data, preset: str, rate: str) -> None:
    """Draw a rate of real runs, and of simulated machines, over the number of all groups."""
    points = rated_of(data, preset)
    counts = sorted({point["groups"] for point in points})
    ticks = {count: str(count) for count in counts}
    one = median([p["rates"][rate] for p in points if p["groups"] == counts[0]]) / counts[0]
    for combine in combines_of(points):
        _draw_spread(axes, by_groups(points, combine, partial(rate_of, rate, 1.0)), combine, "o-")
        rows = simulated_of(data, preset, combine)
        at, values = [row["groups"] for row in rows], [row[rate] for row in rows]
        _draw_simulated(axes, at, values, combine)
        ticks |= {
            row["groups"]: f"{row['groups']}\non {row['nodes']}"
            for row in rows
            if row["nodes"] in (*MACHINES, rows[-1]["nodes"])
        }
    _draw_ideal(axes, list(ticks), one)
    _log_axes(axes, ticks)
    axes.set_xlabel("groups, and on how many machines")


def _draw_ideal(axes: Any, counts: Sequence[int], each: float) -> None:
    at = sorted(set(counts))
    axes.plot(
        at, [each * count for count in at], color=style.QUIET, linestyle=":", linewidth=1.2,
        label="in proportion",
    )  # fmt: skip


def _log_axes(axes: Any, ticks: Mapping[int, str]) -> None:
    style.quieten(axes)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.minorticks_off()


def _draw_curves(axes: Any, runs: Sequence[Point], color: str, label: str) -> None:
    """Draw the interquartile mean of all seeds, and its interval, where all runs have returns."""
    known = [run["curve"] for run in runs if len(run["curve"]["seconds"]) > 1]
    if not known:
        return
    first = max(curve["seconds"][0] for curve in known)
    at = np.linspace(first, min(curve["seconds"][-1] for curve in known), 200)
    curves: Array = np.stack([np.interp(at, c["seconds"], c["return"]) for c in known])
    low, middle, high = band(curves)
    axes.fill_between(at, low, high, color=color, alpha=0.15, linewidth=0)
    axes.plot(at, middle, color=color, linewidth=1.8, label=label)


def _draw_bars(axes: Any, data: Data, counts: Sequence[int]) -> None:
    """Draw received and trained steps by groups, and of several machines, simulated."""
    points = rated_of(data, PPO)
    combine = first_combine(points)
    rows = [row for row in simulated_of(data, PPO, combine) if row["nodes"] in (1, *MACHINES)]
    for side, rate in enumerate(("received", "trained")):
        found = by_groups(points, combine, partial(rate_of, rate, 1.0))
        for place, count in enumerate(counts):
            _bar(axes, place, side, found[count].value, rate)
        for place, row in enumerate(rows, len(counts)):
            _bar(axes, place, side, row[rate], rate, hatch="//", alpha=0.55)
    style.quieten(axes)
    axes.set_yscale("log")
    names = [f"{count} on 1\nreal" for count in counts]
    names += [f"{row['groups']} on {row['nodes']}\nsimulated" for row in rows]
    axes.set_xticks(range(len(names)), names)
    axes.margins(y=0.2)
    axes.set(xlabel="groups, and on how many machines", ylabel=STEPS_PER_S)


def _bar(axes: Any, place: int, side: int, value: float, label: str, **looks: Any) -> None:
    color, at = (style.ORANGE, style.BLUE)[side], place + 0.4 * (side - 0.5)
    named = {} if looks or place else {"label": label}
    axes.bar(at, value, width=0.38, color=color, **named, **looks)
    axes.annotate(  # turned, because it is wider than its bar
        to_count(value), (at, value), (0, 3), textcoords="offset points", ha="center", fontsize=8,
        rotation=90,
    )  # fmt: skip
