"""Figure 6 (d) of the paper: planned against arbitrary mapping, fresh against stale batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tianji.figures.ablation import measure_ablation
from tianji.figures.interface import Wish
from tianji.figures.look import BLUE, ORANGE, QUIET, RED, SKY, new_figure, numbered, quieten
from tianji.figures.points import Point, read_points
from tianji.types import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ABOUT = "planned against arbitrary mapping, P = 1 against 1/8, PPO (paper 1, figure 6 d)"
OPTIONS = frozenset({"rerun"})
NAME = "tianji-6d"
_COLORS = {
    ("planned", 1): BLUE, ("planned", 8): SKY, ("arbitrary", 1): RED, ("arbitrary", 8): ORANGE,
}  # fmt: skip
_AXES = (("seconds", "seconds of training"), ("steps", "thousand environment steps"))
_GRID = 240


def read(_: Wish) -> dict[str, Any]:
    return read_points(NAME)


def rerun() -> dict[str, Any]:
    return measure_ablation(NAME)


def draw(data: Mapping[str, Any]) -> Figure:
    figure = new_figure(12.0, 5.2)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (along, label) in zip(panels, _AXES, strict=True):
        for (mapping, pool_batches), color in _COLORS.items():
            runs = [
                run for run in data["points"]
                if (run["mapping"], run["pool_batches"]) == (mapping, pool_batches)
            ]  # fmt: skip
            _draw_runs(axes, runs, along, color, _name(data, mapping, pool_batches))
        quieten(axes)
        axes.set_xlim(0, None)
        axes.set_xlabel(label)
    panels[0].set_ylabel("mean return of the last 100 episodes")
    panels[0].set_title(_subtitle(data), fontsize=9, color=QUIET, loc="left", pad=8)
    figure.suptitle(
        "What a planned mapping and fresh batches are worth",
        fontsize=13, fontweight="bold", x=0.01, ha="left",
    )  # fmt: skip
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=2, fontsize=9, frameon=False)
    return figure


def _draw_runs(axes: Any, runs: list[Point], along: str, color: str, label: str) -> None:
    """The median of all seeds, and their middle half: a run that collapses is one of several."""
    scale = 1e-3 if along == "steps" else 1.0
    ends = [run["curve"][along][-1] for run in runs]
    at = np.linspace(0.0, float(np.median(ends)), _GRID)
    curves: Array = np.stack([np.interp(at, r["curve"][along], r["curve"]["return"]) for r in runs])
    low, middle, high = np.quantile(curves, (0.25, 0.5, 0.75), axis=0)
    axes.fill_between(at * scale, low, high, color=color, alpha=0.15, linewidth=0)
    axes.plot(at * scale, middle, color=color, linewidth=1.8, label=label)


def _name(data: Mapping[str, Any], mapping: str, pool_batches: int) -> str:
    actors, threads = data["mappings"][mapping]
    age = "New: P = 1" if pool_batches == 1 else f"Staleness: P = 1/{pool_batches}"
    shares = f"{numbered(actors, 'actor')} + {numbered(threads, 'learner thread')}"
    return f"{mapping}, {shares}, {age}"


def _subtitle(data: Mapping[str, Any]) -> str:
    machine = data["machine"]
    seeds = len({run["seed"] for run in data["points"]})
    where = f"{machine['cpu']}, {machine['cores']} cores"
    return f"PPO, CartPole, one learner; medians and middle halves of {seeds} seeds; {where}"
