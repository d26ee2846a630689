"""Draws lag_target.png from the newest results of benchmarks/lag_target.

python docs/pictures/lag_target.py
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

from tianji.figures.style import BLUE, QUIET, RED, new_figure, quieten, save, subtitle

OUTPUT = Path(__file__).with_suffix(".png")
RESULTS = Path(__file__).parents[2] / "benchmarks/lag_target/results"
STEPS = {"steps_to_target": "environment steps to the target"}
SECONDS = {"time_to_target_s": "seconds to the target"}
QUIET_CORES = 0.1
"""Seconds are drawn only if others used fewer cores than this meanwhile."""


def newest() -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return the raw figures of each run, and which of them are worth drawing."""
    kept = json.loads(max(RESULTS.glob("*.json")).read_text())
    rows = [{**row, "set_point": int(row["contestant"])} for row in kept["raw"]]
    is_quiet = kept["machine"]["others_cores"]["max"] < QUIET_CORES
    return rows, STEPS | SECONDS if is_quiet else STEPS


def draw_lag(axes: Any, rows: list[dict[str, Any]]) -> None:
    top = max(row["set_point"] for row in rows)
    axes.plot([0, top], [0, top], color=QUIET, linewidth=1, linestyle="--")
    for row in rows:
        axes.plot(row["set_point"], row["steady_lag"], "o", color=BLUE)
        axes.plot(row["set_point"], row["lag_versions"]["mean"], "_", color=RED, markersize=12)
    axes.text(0.03, 0.95, "blue: in the steady state\nred: of the whole run", va="top", size=8,
              transform=axes.transAxes, color=QUIET)  # fmt: skip


def draw_cost(axes: Any, rows: list[dict[str, Any]], name: str) -> None:
    points = sorted({row["set_point"] for row in rows})
    reached = {
        point: [row[name] for row in rows if row["set_point"] == point and row[name] is not None]
        for point in points
    }
    middles = [median(reached[point]) for point in points]
    axes.plot(points, middles, color=BLUE, linewidth=1.5)
    for point in points:
        axes.plot([point] * len(reached[point]), reached[point], "o", color=BLUE, alpha=0.6)
    axes.set_ylim(bottom=0)


def draw(rows: list[dict[str, Any]], panels: dict[str, str]) -> Any:
    figure = new_figure(3.8 * (1 + len(panels)), 3.4, "")
    lag, *costs = figure.subplots(1, 1 + len(panels))
    draw_lag(lag, rows)
    subtitle(lag, "measured mean lag, versions")
    for axes, (name, words) in zip(costs, panels.items(), strict=True):
        draw_cost(axes, rows, name)
        subtitle(axes, f"{words}; line: median")
    for axes in (lag, *costs):
        quieten(axes)
        axes.set_xticks(sorted({row["set_point"] for row in rows}))
        axes.set_xlabel("lag_target, versions", size=9)
    return figure


if __name__ == "__main__":
    save(draw(*newest()), OUTPUT)
