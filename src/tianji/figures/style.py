"""The look of all figures: one size of type, quiet axes, colours that everybody can tell apart."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
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
PALETTE = (BLUE, RED, GREEN, ORANGE, PURPLE, SKY, BLACK,
           "#8c6d31", "#7f7f7f", "#a3b18a", "#5e3c99", "#9d0208")  # fmt: skip
_NOTE_SIZE = 8.5
_NOTE_CHARACTERS = 15  # in an inch of that size
MARKERS = "osD^vP*X<>hp"


def new_figure(width_in: float, height_in: float, title: str) -> Figure:
    """Return an empty figure with its title; it needs no display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width_in, height_in), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=13, fontweight="bold", x=0.01, ha="left")
    return figure


def save(figure: Figure, path: Path) -> None:
    figure.savefig(path, dpi=DPI, facecolor="white")


def quieten(axes: Any) -> None:
    """Put the grid behind the data, remove the frame, make the ticks grey."""
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(QUIET)
    axes.tick_params(which="both", colors=QUIET, labelcolor=BLACK, labelsize=9)


def subtitle(axes: Any, text: str, size: float = 9) -> None:
    axes.set_title(text, fontsize=size, color=QUIET, loc="left", pad=8)


def legend_below(figure: Figure, ncols: int, about: str | None = None, size: float = 8) -> None:
    """Name every label of all panels once; `about` stands above the names."""
    known: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            known.setdefault(label, handle)
    figure.legend(
        list(known.values()), list(known), loc="outside lower left", ncols=ncols, fontsize=9,
        frameon=False, title=about, title_fontsize=size, alignment="left",
    )  # fmt: skip


def add_notes(figure: Figure, paragraphs: Iterable[str]) -> None:
    """Write paragraphs above the legend, and make the figure higher by as much."""
    width_in, height_in = figure.get_size_inches()
    lines: list[str] = []
    for paragraph in paragraphs:
        lines += textwrap.wrap(paragraph, int(width_in * _NOTE_CHARACTERS))
    (legend,) = figure.legends
    before = [legend.get_title().get_text()] if legend.get_title().get_visible() else []
    legend.set_title("\n".join([*before, *lines]))
    legend.get_title().set_fontsize(_NOTE_SIZE)
    figure.set_size_inches(width_in, height_in + len(lines) * _NOTE_SIZE * 1.3 / 72)
