"""Figures 6 (a) and (b): rates and lag by the number of actors, real and simulated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tianji.figures import style
from tianji.figures.files import Data, Point
from tianji.wording import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENOUGH = 0.9  # equilibrium: the fewest actors with this share of the highest rate
THOUSAND_STEPS = "thousand environment steps per second"
_THOUSAND = 1e3
_LATE = 10  # a text at more actors than this stands on the left of its line
_SIMULATED: dict[str, Any] = {"linestyle": (0, (4, 2)), "linewidth": 1.4}
# The largest marker is drawn first, so that equal rates can all be seen.
RATES = (
    ("produced", "produced by the actors", style.RED, 11.0),
    ("received", "received by the buffer", style.ORANGE, 7.0),
    ("trained", "trained on, over the ratio", style.BLUE, 3.5),
)


def draw_scaling(data: Data, title: str, paper_actors: int) -> Figure:
    """Draw the rates above and the lag below. paper_actors: where the paper has the balance."""
    figure = style.new_figure(8.6, 6.6, title)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
    ratio = data["scaling"]["ratio"]
    points, simulated = data["points"], data["simulated"]
    _draw_capacities(above, data)
    draw_rates(above, points, ratio, "actors")
    for name, _, color, _ in RATES:
        values = _thousands(simulated, name, ratio)
        above.plot(_values(simulated, "actors"), values, color=color, zorder=2, **_SIMULATED)
    above.plot([], [], color=style.QUIET, label="simulated", **_SIMULATED)
    _mark_balances(above, equilibrium(points), paper_actors)
    lag = "lag_versions"
    actors, lags = _values(points, "actors"), _values(points, lag)
    below.plot(actors, lags, "o-", color=style.BLACK, markersize=4)
    looks = {**_SIMULATED, "linewidth": 1.2, "color": style.BLACK}
    below.plot(_values(simulated, "actors"), _values(simulated, lag), **looks)
    _label(above, below, data)
    below.set_xticks(actors)
    style.legend_below(figure, ncols=4)
    return figure


def _values(points: Sequence[Point], name: str) -> list[float]:
    return [point[name] for point in points]


def _thousands(points: Sequence[Point], name: str, ratio: float) -> list[float]:
    """Return a rate in thousands of steps; steps trained on are divided by the ratio."""
    scale = _THOUSAND * (ratio if name == "trained" else 1.0)
    return [point[name] / scale for point in points]


def equilibrium(points: Sequence[Point]) -> int:
    """Return the number of actors from which on more of them hardly raise the rate."""
    best = max(point["received"] for point in points)
    return min(int(p["actors"]) for p in points if p["received"] >= ENOUGH * best)


def draw_rates(axes: Any, points: Sequence[Point], ratio: float, along: str) -> None:
    for name, label, color, size in RATES:
        axes.plot(
            _values(points, along), _thousands(points, name, ratio), "o-", color=color,
            label=label, linewidth=1.6, markersize=size, zorder=3,
        )  # fmt: skip


def _draw_capacities(axes: Any, data: Data) -> None:
    """Draw what each side could do if the other never made it wait."""
    most = max(point["received"] for point in data["points"])
    last = max(point["actors"] for point in data["points"])
    each, learner = data["capacity"]["actor"], data["capacity"]["learner"]
    looks: dict[str, Any] = {"color": style.QUIET, "linewidth": 1.2}
    produced = [0, last * each / _THOUSAND]
    axes.plot([0, last], produced, linestyle=":", label="actors alone", **looks)
    axes.axhline(learner / _THOUSAND, linestyle="-.", label="learner alone", **looks)
    axes.set_ylim(0, 1.35 * max(most, learner) / _THOUSAND)


def _mark_balances(axes: Any, ours: int, paper: int) -> None:
    """Draw lines at the actors with which production and consumption are equal."""
    marks = ((ours, "balance at", 0.02, style.QUIET), (paper, "paper: at", 0.95, style.PURPLE))
    for actors, text, height, color in marks:
        is_left = actors > _LATE or actors < max(ours, paper)
        axes.axvline(actors, color=color, linewidth=1.0, zorder=1)
        axes.text(
            actors, height, f" {text} {counted(actors, 'actor')} ", fontsize=9, color=style.BLACK,
            transform=axes.get_xaxis_transform(), ha="right" if is_left else "left",
        )  # fmt: skip


def _label(above: Any, below: Any, data: Data) -> None:
    scaling, machine = data["scaling"], data["machine"]
    for axes in (above, below):
        style.quieten(axes)
    above.set_ylabel(THOUSAND_STEPS)
    highest = 1.15 * max(1.0, *(p["lag_versions"] for p in data["points"]))
    below.set(xlabel="actors, one environment each", ylabel="lag, versions", ylim=(0, highest))
    learner = f"learner with {counted(scaling['learner_threads'], 'thread')}"
    style.subtitle(
        above,
        f"DQN, CartPole; {learner}, batch {scaling['batch_size']}, ratio {scaling['ratio']:g}; "
        f"{machine['cpu']}, {machine['cores']} cores; one run for each point",
    )
