"""The learning curves of a run, or of several seeds, as a picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tianji.config.files import load_config
from tianji.observe.run_log import all_metrics
from tianji.records import Metrics
from tianji.run_folder.paths import CONFIG_FILE
from tianji.wording import on_clock

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tianji.config.run import RunConfig

CURVE_FILE = "curve.png"
_LINE, _TARGET, _QUIET = "#2563a8", "#b45309", "#6b7280"
_FEW_POINTS = 25
"""A curve with fewer points, of a run of seconds, shows where they are."""
_FEW_SEEDS = 5
"""With fewer seeds than this the band goes from the lowest to the highest."""
_GRID = 400
_MEDIAN = "median (ended seeds keep their last value)"
_Y_LABEL = "mean return of the last 100 episodes"


class Point(NamedTuple):
    """Point(env_steps=41000, wall_s=1.4, mean_return=301.2)."""

    env_steps: int
    wall_s: float
    mean_return: float


def draw_curve(run_dir: Path) -> Path | None:
    """Draw the mean return of the last 100 episodes over steps and over time.

    Returns the file, or None for a run in which no episode has finished.
    """
    config, points = load_config(run_dir / CONFIG_FILE), to_points(all_metrics(run_dir))
    if not points:
        return None
    figure = _make_figure(config, f"seed {config.seed}", (9, 3.8))
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, along in ((left, [p.env_steps for p in points]), (right, [p.wall_s for p in points])):
        _draw_panel(axes, along, points)
        _style(axes, config.target_return)
    _label_steps(left)
    right.set_xlabel(on_clock("seconds", config.engine, of="training"))
    left.set_ylabel(_Y_LABEL)
    if config.target_return is not None:
        right.legend(loc="lower right", bbox_to_anchor=(1, 1), frameon=False, fontsize=9)
    return _save(figure, run_dir)


def draw_seeds(config: RunConfig, run_dirs: Sequence[Path]) -> Path | None:
    """Draw the median of several seeds and a band around it, beside the folders of the runs.

    Returns the file, or None where no episode of any run has finished.
    """
    curves = [points for run_dir in run_dirs if (points := to_points(all_metrics(run_dir)))]
    if not curves:
        return None
    figure = _make_figure(config, f"{len(curves)} seeds", (8, 4.4))
    axes = figure.subplots()
    _draw_band(axes, curves)
    _label_steps(axes)
    _style(axes, config.target_return)
    axes.set_ylabel(_Y_LABEL)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), frameon=False, fontsize=9, ncols=2)
    return _save(figure, run_dirs[0].parent)


def to_points(records: Iterable[Metrics]) -> list[Point]:
    """Return the points of the curve. A resumed run has gone back some steps: points beyond them
    are left out."""
    points: list[Point] = []
    for record in records:
        if record["mean_return_100"] is None:
            continue
        point = Point(record["env_steps"], record["wall_s"], record["mean_return_100"])
        while points and points[-1].env_steps >= point.env_steps:
            points.pop()
        points.append(point)
    return points


def _make_figure(config: RunConfig, of: str, size: tuple[float, float]) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    title = f"{config.env_name}, {config.algorithm.name}, {config.engine} engine, {of}"
    figure.suptitle(title, fontsize=11)
    return figure


def _save(figure: Any, folder: Path) -> Path:
    figure.savefig(path := folder / CURVE_FILE, dpi=150)
    return path


def _draw_panel(axes: Any, along: Sequence[float], points: list[Point]) -> None:
    returns = [point.mean_return for point in points]
    style = ".-" if len(points) < _FEW_POINTS else "-"
    axes.plot(along, returns, style, color=_LINE, linewidth=1.8)
    axes.plot(along[-1:], returns[-1:], "o", color=_LINE, markersize=4, clip_on=False)
    # Right of the last point, outside of the axes: a curve never gets there.
    place = {"xytext": (7, 0), "textcoords": "offset points", "va": "center"}
    last = (along[-1], returns[-1])
    look = {"color": _LINE, "fontsize": 9, "annotation_clip": False}
    axes.annotate(f"{returns[-1]:.4g}", last, **place, **look)
    axes.set_xlim(0, max(along[-1], 1e-9))


def _draw_band(axes: Any, curves: Sequence[Sequence[Point]]) -> None:
    import numpy as np

    for number, points in enumerate(curves):
        steps, returns = [p.env_steps for p in points], [p.mean_return for p in points]
        name = "single seeds" if number == 0 else None
        axes.plot(steps, returns, color=_LINE, linewidth=0.8, alpha=0.35, label=name)
        axes.plot(steps[-1:], returns[-1:], "o", color=_LINE, markersize=3, alpha=0.6)
    if len(curves) < 2:
        return
    steps_G, returns_SG = on_one_grid(curves)
    low, high = (0, 100) if len(curves) < _FEW_SEEDS else (20, 80)
    name = "lowest to highest" if len(curves) < _FEW_SEEDS else f"{low} to {high} % of the seeds"
    edges = np.percentile(returns_SG, [low, high], axis=0)
    axes.fill_between(steps_G, *edges, color=_LINE, alpha=0.18, linewidth=0, label=name)
    axes.plot(steps_G, np.median(returns_SG, axis=0), color=_LINE, linewidth=2.0, label=_MEDIAN)


def on_one_grid(
    curves: Sequence[Sequence[Point]], along: Literal["env_steps", "wall_s"] = "env_steps"
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the curves at common places: [G] steps or seconds and [S, G] returns. The grid starts
    where all curves have started; a seed that has stopped keeps its last value."""
    import numpy as np

    places = [[float(getattr(point, along)) for point in points] for points in curves]
    first, last = max(of[0] for of in places), max(of[-1] for of in places)
    grid = np.linspace(first, max(first, last), _GRID)
    returns = [
        np.interp(grid, of_curve, [point.mean_return for point in points])
        for of_curve, points in zip(places, curves, strict=True)
    ]
    return grid, np.stack(returns)


def _label_steps(axes: Any) -> None:
    from matplotlib.ticker import EngFormatter

    axes.set_xlabel("environment steps")
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))


def _style(axes: Any, target: float | None) -> None:
    """Give all curves the same look, with a dashed line at the target."""
    if target is not None:
        dashes, label = (0, (5, 4)), f"target {target:g}"
        axes.axhline(target, color=_TARGET, linewidth=1.2, linestyle=dashes, label=label)
    axes.set_xlim(left=0)
    axes.margins(y=0.12)
    axes.grid(color="#e5e7eb", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(_QUIET)
    axes.tick_params(colors=_QUIET, labelcolor="black", labelsize=9)
