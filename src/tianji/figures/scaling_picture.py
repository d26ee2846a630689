"""Figures 6 (a) and (b): three rates and the lag by the number of actors, real and simulated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tianji.figures.look import BLACK, BLUE, ORANGE, QUIET, RED, new_figure, numbered, quieten
from tianji.figures.points import Point

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENOUGH = 0.9
"""Equilibrium: the fewest actors with this share of the highest rate."""
_THOUSAND = 1e3
# Largest below smallest: where the three are equal, all of them are seen.
RATES = (
    ("produced", "produced by the actors", RED, 11.0),
    ("received", "received by the buffer", ORANGE, 7.0),
    ("trained", "trained on, over the ratio", BLUE, 3.5),
)


def draw_scaling(data: Mapping[str, Any], title: str) -> Figure:
    """Rates above, lag below, over the same axis."""
    figure = new_figure(8.6, 6.6)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
    ratio = data["scaling"]["ratio"]
    points, simulated = data["points"], data["simulated"]
    _draw_capacities(above, data)
    draw_rates(above, points, ratio, "actors")
    _draw_simulated(above, simulated, ratio)
    _mark_equilibrium(above, equilibrium(points))
    actors = [point["actors"] for point in points]
    below.plot(actors, [p["lag_versions"] for p in points], "o-", color=BLACK, markersize=4)
    below.plot(
        [p["actors"] for p in simulated], [p["lag_versions"] for p in simulated],
        color=BLACK, linestyle=(0, (4, 2)), linewidth=1.2,
    )  # fmt: skip
    _label(figure, above, below, data, title)
    below.set_xticks(actors)
    return figure


def equilibrium(points: Sequence[Point]) -> int:
    """From here on more actors bring next to nothing."""
    best = max(point["received"] for point in points)
    return min(int(p["actors"]) for p in points if p["received"] >= ENOUGH * best)


def draw_rates(axes: Any, points: Sequence[Point], ratio: float, along: str) -> None:
    """All three in thousands of steps a second; training on a step twice counts half each."""
    at = [point[along] for point in points]
    for name, label, color, size in RATES:
        scale = _THOUSAND * (ratio if name == "trained" else 1.0)
        axes.plot(
            at, [point[name] / scale for point in points], "o-", color=color, label=label,
            linewidth=1.6, markersize=size, zorder=3,
        )  # fmt: skip


def _draw_simulated(axes: Any, simulated: Sequence[Point], ratio: float) -> None:
    at = [point["actors"] for point in simulated]
    for name, _, color, _ in RATES:
        scale = _THOUSAND * (ratio if name == "trained" else 1.0)
        axes.plot(
            at, [point[name] / scale for point in simulated], color=color, linewidth=1.4,
            linestyle=(0, (4, 2)), zorder=2,
        )  # fmt: skip
    axes.plot([], [], color=QUIET, linewidth=1.4, linestyle=(0, (4, 2)), label="simulated")


def _draw_capacities(axes: Any, data: Mapping[str, Any]) -> None:
    """What each side could do if the other one never held it up."""
    most = max(point["received"] for point in data["points"])
    last = max(point["actors"] for point in data["points"])
    each, learner = data["capacity"]["actor"], data["capacity"]["learner"]
    axes.plot([0, last], [0, last * each / _THOUSAND], color=QUIET, linewidth=1, linestyle=":")
    axes.axhline(learner / _THOUSAND, color=QUIET, linewidth=1, linestyle=":")
    top = 1.35 * max(most, learner)
    axes.set_ylim(0, top / _THOUSAND)
    seen = min(last, top / each)
    axes.annotate(
        "  what the actors could produce  ", (seen * 0.94, seen * 0.94 * each / _THOUSAND),
        ha="left" if seen < last / 2 else "right", va="center", fontsize=8.5, color=QUIET,
    )  # fmt: skip
    axes.annotate(
        "what the learner could train on", (last, learner / _THOUSAND), (0, 3),
        textcoords="offset points", ha="right", va="bottom", fontsize=8.5, color=QUIET,
    )  # fmt: skip


def _mark_equilibrium(axes: Any, actors: int) -> None:
    axes.axvline(actors, color=QUIET, linewidth=0.8, zorder=1)
    text = f" balance at {numbered(actors, 'actor')}"
    axes.text(actors, 0.02, text, transform=axes.get_xaxis_transform(), fontsize=9, color=BLACK)


def _label(figure: Figure, above: Any, below: Any, data: Mapping[str, Any], title: str) -> None:
    scaling, machine = data["scaling"], data["machine"]
    for axes in (above, below):
        quieten(axes)
    above.set_ylabel("thousand environment steps per second")
    below.set_ylabel("lag, versions")
    below.set_xlabel("actors, one environment each")
    below.set_ylim(0, 1.15 * max(1.0, *(p["lag_versions"] for p in data["points"])))
    learner = f"learner with {numbered(scaling['learner_threads'], 'thread')}"
    above.set_title(
        f"DQN, CartPole; {learner}, batch {scaling['batch_size']}, ratio {scaling['ratio']:g}; "
        f"{machine['cpu']}, {machine['cores']} cores",
        fontsize=9, color=QUIET, loc="left", pad=8,
    )  # fmt: skip
    figure.suptitle(title, fontsize=13, fontweight="bold", x=0.01, ha="left")
    figure.legend(loc="outside lower left", ncols=4, fontsize=9, frameon=False)
