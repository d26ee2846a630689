"""Figures 4 (c), 4 (d) and 6 (c): groups on one machine, and simulated on more of them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tianji.figures import style
from tianji.figures.files import Data, Point
from tianji.figures.groups.runs import trained_per_step
from tianji.types import Array
from tianji.wording import counted, to_count

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLORS = {"average": style.BLUE, "gossip": style.GREEN, "gradients": style.RED}
WIDTHS = {"average": 3.4, "gossip": 1.5, "gradients": 1.5}
"""The first is broad, so that lines that coincide can both be seen."""
PPO, DQN = "cartpole-ppo", "cartpole-dqn"
NAMES = {PPO: "PPO, CartPole", DQN: "DQN, CartPole"}
STEPS_PER_S = "environment steps per second"
FROM_NODES = 8
"""Simulated points in figures 4 (c) and 4 (d) begin with so many machines, as the paper's."""
PAPER_4C = (
    "Paper (8 nodes of 40 cores): PPO on CartPole to 300 up to 4.36 times as fast as RLlib and "
    "2.95 times as XingTian; DQN on Pong 1.6 times\nas fast as XingTian, with 7.13 times its "
    "throughput. Its text gives no seconds. Ours: CartPole, compared with nothing but itself."
)
PAPER_4D = (
    "Paper: returns on 8 nodes well above those of XingTian and RLlib, at a far higher throughput; "
    "its text gives no numbers."
)
PAPER_6C = (
    "Paper: with groups of the balanced size, receiving and training grow linearly with the "
    "actors; its text gives no numbers."
)


def draw_final_times(data: Data) -> Figure:
    """Draw figure 4 (c): seconds to the target by groups, and training throughput."""
    figure = style.new_figure(13.0, 5.4, "More groups: time to a return of 300, and throughput")
    left, middle, right = figure.subplots(1, 3)
    for axes, preset in ((left, PPO), (middle, DQN)):
        _draw_times(axes, _points(data, preset), NAMES[preset])
    left.set_ylabel(f"seconds to a mean return of {data['target']:g}")
    _draw_rates(right, data, DQN, "trained")
    right.set_title(f"{NAMES[DQN]}: throughput", fontsize=11)
    right.set_ylabel(f"{STEPS_PER_S} trained on")
    style.legend_below(figure, ncols=6, about=f"{_where(data)}\n{PAPER_4C}", size=9)
    return figure


def draw_returns(data: Data) -> Figure:
    """Draw figure 4 (d): returns over time by groups, and what the machine does."""
    figure = style.new_figure(12.0, 5.2, "Returns over time and throughput by groups (PPO)")
    left, right = figure.subplots(1, 2)
    points = _points(data, PPO)
    counts = sorted({point["groups"] for point in points})
    for look, count in enumerate(counts):
        runs = [p for p in points if p["groups"] == count and p["combine"] == _first(points)]
        _draw_curves(left, runs, style.PALETTE[look], counted(count, "group"))
    style.quieten(left)
    left.set(xlabel="seconds of training", ylabel="mean return of the last 100 episodes")
    left.set(xlim=(0, None), ylim=(0, None))
    left.axhline(data["target"], color=style.QUIET, linewidth=0.8, linestyle=":")
    _draw_bars(right, data, counts)
    about = f"{_where(data)}; combined by {_first(points)}\n{PAPER_4D}"
    style.legend_below(figure, ncols=6, about=about, size=9)
    return figure


def draw_groups(data: Data) -> Figure:
    """Draw figure 6 (c): rates by groups on one machine, and simulated on 1 to 256 of them."""
    figure = style.new_figure(12.0, 5.4, "Groups carry on where one learner ends")
    left, right = figure.subplots(1, 2)
    points = _points(data, DQN)
    counts = sorted({point["groups"] for point in points})
    first = _median([p["rates"]["received"] for p in points if p["groups"] == counts[0]])
    _draw_ideal(left, counts, first / counts[0])
    ratio = trained_per_step(DQN)
    for combine in _combines(points):
        for kind, look, scale in (("received", "o-", 1.0), ("trained", "+", ratio)):
            rates = _by_groups(points, combine, partial(_rate, kind, scale))
            _draw_spread(left, rates, combine, look)
    left.plot([], [], "+", color=style.QUIET, label="trained on, over the ratio")
    style.quieten(left)
    left.set(xlim=(0, None), ylim=(0, None), xlabel="groups on one machine, real runs")
    left.set_xticks(counts)
    left.set_ylabel(STEPS_PER_S)
    simulated = [row for row in data["simulated"] if row["preset"] == DQN]
    _draw_ideal(right, [row["nodes"] for row in simulated], simulated[0]["received"])
    for combine in _combines(simulated):
        rows = [row for row in simulated if row["combine"] == combine]
        at, values = [row["nodes"] for row in rows], [row["received"] for row in rows]
        _draw_simulated(right, at, values, combine, "simulated")
    _log_axes(right, sorted({row["nodes"] for row in simulated}))
    each = simulated[0]["groups"] // simulated[0]["nodes"]
    right.set_xlabel(f"machines of {counted(each, 'group')}, simulated")
    right.set_ylabel(f"received {STEPS_PER_S}")
    style.legend_below(figure, ncols=4, about=f"DQN, CartPole; {_where(data)}\n{PAPER_6C}", size=9)
    return figure


def _points(data: Data, preset: str) -> list[Point]:
    return [point for point in data["points"] if point["preset"] == preset]


def _combines(points: Sequence[Point]) -> list[str]:
    known = {point["combine"] for point in points}
    return [name for name in COLORS if name in known]


def _first(points: Sequence[Point]) -> str:
    return _combines(points)[0]


def _where(data: Data) -> str:
    machine = data["machine"]
    cores = counted(data["cores_per_group"], "core")
    seeds = counted(len({point["seed"] for point in data["points"]}), "run")
    return (
        f"Real: {machine['cpu']}, {machine['cores']} cores, {cores} for each group; medians and "
        f"ranges of {seeds}. Simulated: machines like it, links of 10 Gbit/s"
    )


def _median(values: Sequence[float]) -> float:
    return float(statistics.median(values))


def _rate(name: str, scale: float, point: Point) -> float:
    return float(point["rates"][name]) / scale


Spread = dict[int, tuple[float, float, float]]
"""Lowest, middle and highest value by number of groups."""


def _by_groups(
    points: Sequence[Point], combine: str, value: Callable[[Point], float | None]
) -> Spread:
    """Return the values of one way to combine; one group, which combines nothing, is of all."""
    found: Spread = {}
    for count in sorted({point["groups"] for point in points}):
        some = [
            p for p in points if p["groups"] == count and (count == 1 or p["combine"] == combine)
        ]
        values = [v for v in map(value, some) if v is not None]
        if 2 * len(values) > len(some):  # else the median is "never"
            worst = [math.inf] * (len(some) - len(values))
            found[count] = (min(values), _median([*values, *worst]), max(values))
    return found


def _draw_spread(axes: Any, spread: Spread, combine: str, look: str) -> None:
    at, color = list(spread), COLORS[combine]
    low, middle, high = np.array([spread[count] for count in at]).reshape(-1, 3).T
    label = None
    if "-" in look:
        axes.fill_between(at, low, high, color=color, alpha=0.13, linewidth=0)
        label = combine
    width = WIDTHS[combine]
    axes.plot(at, middle, look, color=color, label=label, linewidth=width, markersize=4 + 2 * width)


def _draw_simulated(axes: Any, at: list[int], values: list[float], combine: str, name: str) -> None:
    width = WIDTHS[combine]
    axes.plot(
        at, values, "o", color=COLORS[combine], linestyle=(0, (4, 2)), fillstyle="none",
        linewidth=width, markersize=3 + 2 * width, label=f"{combine}, {name}",
    )  # fmt: skip


def _draw_times(axes: Any, points: Sequence[Point], name: str) -> None:
    for combine in _combines(points):
        times = _by_groups(points, combine, lambda point: point["time_to_target_s"])
        if times:
            _draw_spread(axes, times, combine, "o-")
    style.quieten(axes)
    axes.set(xlim=(0, None), ylim=(0, None), xlabel="groups on one machine, real runs")
    axes.set_xticks(sorted({point["groups"] for point in points}))
    reached = sum(point["time_to_target_s"] is not None for point in points)
    axes.set_title(f"{name}: {reached} of {len(points)} runs reached it", fontsize=11)


def _draw_rates(axes: Any, data: Data, preset: str, rate: str) -> None:
    """Draw a rate of real runs, and of simulated ones from 8 machines on, over all groups."""
    points = _points(data, preset)
    for combine in _combines(points):
        real = _by_groups(points, combine, partial(_rate, rate, 1.0))
        _draw_spread(axes, real, combine, "o-")
        rows = [
            row for row in data["simulated"]
            if (row["preset"], row["combine"]) == (preset, combine) and row["nodes"] >= FROM_NODES
        ]  # fmt: skip
        at, values = [row["groups"] for row in rows], [row[rate] for row in rows]
        _draw_simulated(axes, at, values, combine, "8 to 256 machines, simulated")
    counts = {point["groups"] for point in points} | {
        row["groups"] for row in data["simulated"] if row["nodes"] in (8, 32, 256)
    }
    _log_axes(axes, sorted(counts))
    axes.set_xlabel("groups")


def _draw_ideal(axes: Any, counts: Sequence[int], each: float) -> None:
    at = sorted(set(counts))
    axes.plot(
        at, [each * count for count in at], color=style.QUIET, linestyle=":", linewidth=1.2,
        label="in proportion",
    )  # fmt: skip


def _log_axes(axes: Any, ticks: Sequence[int]) -> None:
    style.quieten(axes)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(list(ticks), [str(tick) for tick in ticks])
    axes.minorticks_off()


def _draw_curves(axes: Any, runs: Sequence[Point], color: str, label: str) -> None:
    """Draw the median of all seeds, and their range."""
    known = [run["curve"] for run in runs if len(run["curve"]["seconds"]) > 1]
    if not known:
        return
    at = np.linspace(0.0, float(np.median([curve["seconds"][-1] for curve in known])), 200)
    curves: Array = np.stack([np.interp(at, c["seconds"], c["return"]) for c in known])
    low, middle, high = np.quantile(curves, (0.0, 0.5, 1.0), axis=0)
    axes.fill_between(at, low, high, color=color, alpha=0.15, linewidth=0)
    axes.plot(at, middle, color=color, linewidth=1.8, label=label)


def _draw_bars(axes: Any, data: Data, counts: Sequence[int]) -> None:
    """Draw received and trained steps by groups, and of 8 machines, simulated."""
    points, combine = _points(data, PPO), _first(_points(data, PPO))
    (large,) = [
        row for row in data["simulated"]
        if (row["preset"], row["combine"], row["nodes"]) == (PPO, combine, FROM_NODES)
    ]  # fmt: skip
    for place, count in enumerate(counts):
        for side, rate in enumerate(("received", "trained")):
            found = _by_groups(points, combine, partial(_rate, rate, 1.0))
            _bar(axes, place, side, found[count][1], rate)
    for side, rate in enumerate(("received", "trained")):
        _bar(axes, len(counts), side, large[rate], rate, hatch="//", alpha=0.55)
    style.quieten(axes)
    axes.set_yscale("log")
    names = [*map(str, counts), f"{large['groups']} on 8\nmachines,\nsimulated"]
    axes.set_xticks(range(len(names)), names)
    axes.margins(y=0.2)
    axes.set(xlabel="groups", ylabel=STEPS_PER_S)


def _bar(axes: Any, place: int, side: int, value: float, label: str, **looks: Any) -> None:
    color, at = (style.ORANGE, style.BLUE)[side], place + 0.4 * (side - 0.5)
    named = {} if looks or place else {"label": label}
    axes.bar(at, value, width=0.38, color=color, **named, **looks)
    axes.annotate(
        to_count(value), (at, value), (0, 3), textcoords="offset points", ha="center", fontsize=8
    )
