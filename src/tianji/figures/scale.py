"""The picture of `tianji simulate --output`: rates and lag against scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tianji.figures.look import BLACK, BLUE, QUIET, RED, SKY, new_figure, quieten

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATES = (("produced", SKY, 6.0), ("received", BLUE, 2.0), ("trained", RED, 2.0))


def draw_scale(title: str, rows: Sequence[Mapping[str, Any]]) -> Figure:
    """rows: what `tianji simulate --json` prints, from the smallest size to the largest."""
    figure = new_figure(11.0, 4.6)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    name, at = _scale(rows)
    for rate, color, width in RATES:  # what is produced is mostly received: a broad line below
        left.plot(at, [row[rate] for row in rows], color=color, linewidth=width, label=rate)
    _draw_ideal(left, at, rows)
    left.set_ylabel("environment steps per second")
    left.set_yscale("log")
    right.plot(at, [row["lag_versions"] for row in rows], marker="o", color=BLACK, linewidth=2)
    right.set_ylim(bottom=0)
    right.set_ylabel("mean lag, in versions")
    for axes in (left, right):
        quieten(axes)
        axes.set_xscale("log", base=2)
        axes.set_xticks(at, [f"{value:g}" for value in at])
        axes.minorticks_off()
        axes.set_xlabel(name)
    left.legend(fontsize=9, frameon=False)
    figure.suptitle(
        f"{title}: simulated rates and lag",
        fontsize=13, fontweight="bold", x=0.01, ha="left",
    )  # fmt: skip
    return figure


def _scale(rows: Sequence[Mapping[str, Any]]) -> tuple[str, list[int]]:
    """Machines where their number changes, else actors."""
    nodes = [row["nodes"] for row in rows]
    if nodes[-1] > 1:
        return f"machines, {rows[-1]['actors_per_node']} actors on each", nodes
    return "actors", [row["actors_per_node"] for row in rows]


def _draw_ideal(axes: Any, at: Sequence[int], rows: Sequence[Mapping[str, Any]]) -> None:
    first = rows[0]["produced"] / at[0]
    axes.plot(
        at, [first * value for value in at], color=QUIET, linewidth=1, linestyle=(0, (4, 3)),
        label="produced, if it grew with scale",
    )  # fmt: skip
