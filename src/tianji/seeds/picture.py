"""One picture of several seeds: their median and a band around it, over environment steps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tianji.observe.curve import CURVE_FILE, LINE, draw_target, style_axes, to_points
from tianji.observe.run_log import METRICS_FILE, read_lines

if TYPE_CHECKING:
    from tianji.config.run import RunConfig
    from tianji.observe.curve import Point

FEW = 5
"""With fewer seeds than this the band goes from the lowest to the highest."""
_GRID = 400
_MEDIAN = "median (ended seeds keep their last value)"


def draw_seeds(config: RunConfig, run_dirs: Sequence[Path]) -> Path | None:
    """Draw curve.png beside the folders of the runs.

    Gives the file, or None where no episode of any run had finished.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    curves = [to_points(read_lines(run_dir / METRICS_FILE)) for run_dir in run_dirs]
    curves = [points for points in curves if points]
    if not curves:
        return None
    figure = Figure(figsize=(8, 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    _draw_band(axes, curves)
    draw_target(axes, config.target_return)
    style_axes(axes, over_steps=True)
    axes.set_ylabel("mean return of the last 100 episodes")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), frameon=False, fontsize=9, ncols=2)
    figure.suptitle(
        f"{config.env_name}, {config.algorithm.name}, {config.engine} engine, {len(curves)} seeds",
        fontsize=11,
    )
    path = run_dirs[0].parent / CURVE_FILE
    figure.savefig(path, dpi=150)
    return path


def _draw_band(axes: Any, curves: Sequence[Sequence[Point]]) -> None:
    for number, points in enumerate(curves):
        steps, returns = [p.env_steps for p in points], [p.mean_return for p in points]
        name = "single seeds" if number == 0 else None
        axes.plot(steps, returns, color=LINE, linewidth=0.8, alpha=0.35, label=name)
        axes.plot(steps[-1:], returns[-1:], "o", color=LINE, markersize=3, alpha=0.6)
    if len(curves) < 2:
        return
    steps_G, returns_SG = on_one_grid(curves)
    low, high = (0, 100) if len(curves) < FEW else (20, 80)
    name = "lowest to highest" if len(curves) < FEW else f"{low} to {high} % of the seeds"
    edges = np.percentile(returns_SG, [low, high], axis=0)
    axes.fill_between(steps_G, *edges, color=LINE, alpha=0.18, linewidth=0, label=name)
    axes.plot(steps_G, np.median(returns_SG, axis=0), color=LINE, linewidth=2.0, label=_MEDIAN)


def on_one_grid(
    curves: Sequence[Sequence[Point]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The curves at common steps: [G] steps and [S, G] returns. The grid begins where all curves
    have begun; a seed that has stopped keeps its last value."""
    first = max(points[0].env_steps for points in curves)
    last = max(points[-1].env_steps for points in curves)
    steps = np.linspace(first, max(first, last), _GRID)
    returns = [
        np.interp(steps, [p.env_steps for p in points], [p.mean_return for p in points])
        for points in curves
    ]
    return steps, np.stack(returns)
