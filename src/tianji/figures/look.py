"""How all figures look: one size of type, quiet axes, colours that everybody can tell apart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 160
QUIET = "#6b7280"
GRID = "#e5e7eb"
# The palette of Okabe and Ito, made to be told apart by colour-blind readers too.
SKY, BLUE, GREEN, ORANGE = "#56b4e9", "#0072b2", "#009e73", "#e69f00"
RED, PURPLE, YELLOW, BLACK = "#d55e00", "#cc79a7", "#f0e442", "#1f2937"
PALETTE = (
    BLUE,
    RED,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    BLACK,
    "#8c6d31",
    "#7f7f7f",
    "#a3b18a",
    "#5e3c99",
    "#9d0208",
)
MARKERS = "osD^vP*X<>hp"


def new_figure(width_in: float, height_in: float) -> Figure:
    """A figure that needs no display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width_in, height_in), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, path: Path) -> None:
    figure.savefig(path, dpi=DPI, facecolor="white")


def quieten(axes: Any) -> None:
    """Grid behind, no frame, grey ticks."""
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(QUIET)
    axes.tick_params(which="both", colors=QUIET, labelcolor=BLACK, labelsize=9)


def numbered(count: int, noun: str) -> str:
    """`1 actor`, `4 actors`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
