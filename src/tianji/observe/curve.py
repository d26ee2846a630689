"""The learning curve of a run as a picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tianji.config.files import load_config
from tianji.config.runs import CONFIG_FILE
from tianji.display.numbers import on_clock
from tianji.observe.run_log import METRICS_FILE, read_lines

CURVE_FILE = "curve.png"
_LINE, _TARGET, _QUIET = "#2563a8", "#b45309", "#6b7280"


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
    _draw_panel(left, [p.env_steps for p in points], points, config.target_return)
    _draw_panel(right, [p.wall_s for p in points], points, config.target_return)
    left.set_xlabel("environment steps")
    left.xaxis.set_major_formatter(_steps_formatter())
    right.set_xlabel(on_clock("seconds", config.engine, of="training"))
    left.set_ylabel("mean return of the last 100 episodes")
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


def _draw_panel(axes: Any, along: list[Any], points: list[Point], target: float | None) -> None:
    returns = [point.mean_return for point in points]
    few = len(points) < 25  # a run of seconds: show where its points are
    axes.plot(along, returns, ".-" if few else "-", color=_LINE, linewidth=1.8)
    axes.plot(along[-1:], returns[-1:], "o", color=_LINE, markersize=4)
    axes.annotate(
        f"{returns[-1]:.4g}",
        (along[-1], returns[-1]),
        xytext=(-4, -16),
        textcoords="offset points",
        ha="right",
        color=_LINE,
        fontsize=9,
    )
    if target is not None:
        axes.axhline(target, color=_TARGET, linewidth=1.2, linestyle=(0, (5, 4)))
        axes.annotate(
            f"target {target:g}",
            (0, target),
            xycoords=("axes fraction", "data"),
            xytext=(4, 3),
            textcoords="offset points",
            color=_TARGET,
            fontsize=9,
        )
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
