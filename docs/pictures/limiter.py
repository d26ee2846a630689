"""Draws limiter.png from the newest results of benchmarks/limiter on the virtual clock.

python docs/pictures/limiter.py
"""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import fill
from typing import Any

from tianji.figures.style import BLUE, QUIET, RED, new_figure, quieten, save, subtitle

OUTPUT = Path(__file__).with_suffix(".png")
RESULTS = Path(__file__).parents[2] / "benchmarks/limiter/results"
STYLES = {
    "balance, set-point 1": (BLUE, "-", 2.4),
    "balance, set-point 1 of at most 2": (BLUE, "--", 1.4),
    "balance, set-point 4": (BLUE, ":", 1.6),
    "limiter": (RED, "-", 1.2),
    "limiter, 4 x as wide": (RED, ":", 1.2),
}
PANELS = {
    "rate": "environment steps per second",
    "lag_p95": "lag, p95 of each second, versions",
    "blocked_share": "time with a blocked insert, share",
}


def newest() -> list[dict[str, Any]]:
    """Return the runs that were kept to be drawn."""
    for path in sorted(RESULTS.glob("*.json"), reverse=True):
        kept = json.loads(path.read_text())
        if kept["engine"] == "virtual":
            return [row for row in kept["raw"] if "series" in row]
    raise SystemExit("no results of the virtual clock: run python -m benchmarks.limiter.bench")


def draw_panel(axes: Any, rows: list[dict[str, Any]], name: str) -> None:
    for row in rows:
        if row["contestant"] in STYLES:
            color, line, width = STYLES[row["contestant"]]
            values = row["series"][name]
            seconds = [second + 0.5 for second in range(len(values))]
            axes.plot(seconds, values, line, color=color, linewidth=width, label=row["contestant"])
    for begin_s in rows[0]["series"]["begins"].values():
        axes.axvline(begin_s, color=QUIET, linewidth=0.6, linestyle="--")
    axes.set_ylim(bottom=0)
    quieten(axes)


def name_phases(axes: Any, begins: dict[str, float]) -> None:
    for name, begin_s in begins.items():
        axes.text(begin_s + 0.4, 1.02, fill(name, 12), size=6, color=QUIET, va="bottom",
                  transform=axes.get_xaxis_transform())  # fmt: skip


def draw(rows: list[dict[str, Any]]) -> Any:
    figure = new_figure(11.0, 7.6, "")
    stores = list(dict.fromkeys(row["store"] for row in rows))
    grid = figure.subplots(len(PANELS), len(stores), sharex=True, squeeze=False)
    for column, store in enumerate(stores):
        ours = [row for row in rows if row["store"] == store]
        for line, (name, words) in enumerate(PANELS.items()):
            axes = grid[line][column]
            draw_panel(axes, ours, name)
            axes.set_ylabel(words, size=7.5)
        name_phases(grid[0][column], ours[0]["series"]["begins"])
        subtitle(grid[0][column], f"{store}\n\n\n\n")
        grid[-1][column].set_xlabel("seconds, virtual clock", size=9)
    grid[1][0].legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(0.5, 0.92))
    return figure


if __name__ == "__main__":
    save(draw(newest()), OUTPUT)
