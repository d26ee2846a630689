"""Figure 6 (d): planned against arbitrary mapping, fresh against stale batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tianji.figures import style
from tianji.figures.files import Data, Point
from tianji.types import Array
from tianji.wording import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLORS = {
    ("planned", 1): style.BLUE,
    ("planned", 8): style.SKY,
    ("arbitrary", 1): style.RED,
    ("arbitrary", 8): style.ORANGE,
}
_AXES = (("seconds", "seconds of training"), ("steps", "thousand environment steps"))
_GRID = 240


def draw_ablation(data: Data) -> Figure:
    figure = style.new_figure(12.0, 5.2, "What a planned mapping and fresh batches are worth")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (along, label) in zip(panels, _AXES, strict=True):
        for (mapping, pool_batches), color in _COLORS.items():
            runs = [
                run for run in data["points"]
                if (run["mapping"], run["pool_batches"]) == (mapping, pool_batches)
            ]  # fmt: skip
            _draw_runs(axes, runs, along, color, _name(data, mapping, pool_batches))
        style.quieten(axes)
        axes.set_xlim(0, None)
        axes.set_xlabel(label)
    panels[0].set_ylabel("mean return of the last 100 episodes")
    seeds = len({run["seed"] for run in data["points"]})
    where = f"{data['machine']['cpu']}, {data['machine']['cores']} cores"
    style.subtitle(
        panels[0],
        f"PPO, CartPole, one learner; medians and middle halves of {seeds} seeds; {where}",
    )
    style.legend_below(figure, ncols=2)
    return figure


def _draw_runs(axes: Any, runs: list[Point], along: str, color: str, label: str) -> None:
    """Draw the median of all seeds, and their middle half."""
    scale = 1e-3 if along == "steps" else 1.0
    ends = [run["curve"][along][-1] for run in runs]
    at = np.linspace(0.0, float(np.median(ends)), _GRID)
    curves: Array = np.stack([np.interp(at, r["curve"][along], r["curve"]["return"]) for r in runs])
    low, middle, high = np.quantile(curves, (0.25, 0.5, 0.75), axis=0)
    axes.fill_between(at * scale, low, high, color=color, alpha=0.15, linewidth=0)
    axes.plot(at * scale, middle, color=color, linewidth=1.8, label=label)


def _name(data: Data, mapping: str, pool_batches: int) -> str:
    actors, threads = data["mappings"][mapping]
    age = "New: P = 1" if pool_batches == 1 else f"Staleness: P = 1/{pool_batches}"
    shares = f"{counted(actors, 'actor')} + {counted(threads, 'learner thread')}"
    return f"{mapping}, {shares}, {age}"
