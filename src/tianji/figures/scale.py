"""The picture of `tianji simulate --output`: rates and lag against scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tianji.figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATES = (("produced", style.SKY, 6.0), ("received", style.BLUE, 2.0), ("trained", style.RED, 2.0))


def draw_scale(title: str, rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw what `tianji simulate --json` prints, from the smallest size to the largest."""
    figure = style.new_figure(11.0, 4.6, f"{title}: simulated rates and lag")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    name, at = _scale(rows)
    for rate, color, width in RATES:  # produced and received mostly coincide: a broad line below
        left.plot(at, [row[rate] for row in rows], color=color, linewidth=width, label=rate)
    _draw_ideal(left, at, rows)
    left.set_ylabel("environment steps per second")
    left.set_yscale("log")
    right.plot(
        at, [row["lag_versions"] for row in rows], marker="o", color=style.BLACK, linewidth=2
    )
    right.set_ylim(bottom=0)
    right.set_ylabel("mean lag, in versions")
    for axes in (left, right):
        style.quieten(axes)
        axes.set_xscale("log", base=2)
        axes.set_xticks(at, [f"{value:g}" for value in at])
        axes.minorticks_off()
        axes.set_xlabel(name)
    left.legend(fontsize=9, frameon=False)
    return figure


def _scale(rows: Sequence[Mapping[str, Any]]) -> tuple[str, list[int]]:
    """Return machines where their number changes, else actors."""
    nodes = [row["nodes"] for row in rows]
    if nodes[-1] > 1:
        return f"machines, {rows[-1]['actors_per_node']} actors on each", nodes
    return "actors", [row["actors_per_node"] for row in rows]


def _draw_ideal(axes: Any, at: Sequence[int], rows: Sequence[Mapping[str, Any]]) -> None:
    first = rows[0]["produced"] / at[0]
    axes.plot(
        at, [first * value for value in at], color=style.QUIET, linewidth=1, linestyle=(0, (4, 3)),
        label="produced, if it grew with scale",
    )  # fmt: skip
