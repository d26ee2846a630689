"""The learning curve of a run as a picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tianji.config.files import load_config
from tianji.display.numbers import on_clock
from tianji.observe.run_log import METRICS_FILE, read_lines
from tianji.run_folder.paths import CONFIG_FILE

CURVE_FILE = "curve.png"
LINE, _TARGET, _QUIET = "#2563a8", "#b45309", "#6b7280"


class Point(NamedTuple):
    """Point(env_steps=41000, wall_s=1.4, mean_return=301.2)."""

    env_steps: int
    wall_s: float
    mean_return: float


def draw_curve(run_dir: Path) -> Path | None:
    """Draw the mean return of the last 100 episodes over steps and over time.

    Gives the file, or None for a run in which no episode had finished.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    config = load_config(run_dir / CONFIG_FILE)
    points = to_points(read_lines(run_dir / METRICS_FILE))
    if not points:
        return None
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, sharey=True)
    _draw_panel(left, [p.env_steps for p in points], points)
    _draw_panel(right, [p.wall_s for p in points], points)
    style_axes(left, over_steps=True)
    style_axes(right, over_steps=False)
    right.set_xlabel(on_clock("seconds", config.engine, of="training"))
    left.set_ylabel("mean return of the last 100 episodes")
    if config.target_return is not None:
        draw_target(left, config.target_return)
        draw_target(right, config.target_return)
        right.legend(loc="lower right", bbox_to_anchor=(1, 1), frameon=False, fontsize=9)
    figure.suptitle(
        f"{config.env_name}, {config.algorithm.name}, {config.engine} engine, seed {config.seed}",
        fontsize=11,
    )
    path = run_dir / CURVE_FILE
    figure.savefig(path, dpi=150)
    return path


def to_points(records: Iterable[Mapping[str, Any]]) -> list[Point]:
    """The points of the curve. A run that was resumed has gone back some steps: what it had
    recorded beyond them is left out."""
    points: list[Point] = []
    for record in records:
        mean_return = record.get("mean_return_100")
        if mean_return is None:
            continue
        point = Point(int(record["env_steps"]), float(record["wall_s"]), float(mean_return))
        while points and points[-1].env_steps >= point.env_steps:
            points.pop()
        points.append(point)
    return points


def _draw_panel(axes: Any, along: list[Any], points: list[Point]) -> None:
    returns = [point.mean_return for point in points]
    few = len(points) < 25  # a run of seconds: show where its points are
    axes.plot(along, returns, ".-" if few else "-", color=LINE, linewidth=1.8)
    axes.plot(along[-1:], returns[-1:], "o", color=LINE, markersize=4, clip_on=False)
    # Right of the last point, outside of the axes: a curve never gets there.
    axes.annotate(
        f"{returns[-1]:.4g}",
        (along[-1], returns[-1]),
        xytext=(7, 0),
        textcoords="offset points",
        va="center",
        color=LINE,
        fontsize=9,
        annotation_clip=False,
    )
    axes.set_xlim(0, max(along[-1], 1e-9))


def draw_target(axes: Any, target: float | None) -> None:
    """A dashed line at the target, for the legend; nothing without one."""
    if target is not None:
        label = f"target {target:g}"
        axes.axhline(target, color=_TARGET, linewidth=1.2, linestyle=(0, (5, 4)), label=label)


def style_axes(axes: Any, over_steps: bool) -> None:
    """The look of all curves of returns."""
    if over_steps:
        axes.set_xlabel("environment steps")
        axes.xaxis.set_major_formatter(_steps_formatter())
    axes.set_xlim(left=0)
    axes.margins(y=0.12)
    axes.grid(color="#e5e7eb", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(_QUIET)
    axes.tick_params(colors=_QUIET, labelcolor="black", labelsize=9)


def _steps_formatter() -> Any:
    from matplotlib.ticker import EngFormatter

    return EngFormatter(sep="")
