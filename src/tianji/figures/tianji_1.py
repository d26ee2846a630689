"""Figure 1 of the paper for a run of one's own: what every role did when, and how long it idled."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tianji.config.files import load_config
from tianji.figures.interface import Wish
from tianji.figures.look import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    QUIET,
    RED,
    SKY,
    YELLOW,
    new_figure,
    quieten,
)
from tianji.figures.window import View, choose, look
from tianji.run_folder.paths import CONFIG_FILE, find_run
from tianji.trace.read import Arrow, Timeline, newest_trace, read_trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ABOUT = "what every role of a run did when, and its idle share (paper 1, figure 1)"
OPTIONS = frozenset({"run", "from_s", "for_s"})

LEGEND = {
    "infer": ("① infer", SKY),
    "step": ("② simulate a step", BLUE),
    "update": ("③ update", RED),
    "write": ("begin or hand over an unroll", GREEN),
    "receive": ("receive", ORANGE),
    "take": ("put a batch together", YELLOW),
    "publish": ("publish a policy", PURPLE),
    "pick up": ("pick up a policy", "#8b3a78"),
    "save": ("save", BLACK),
    "paced": ("idle: paced", "#d1d5db"),
    "wait": ("idle: nothing to do", "#eceef1"),
}
IDLE = ("paced", "wait")
_ARROWS: dict[str, tuple[str, Any]] = {"item": (GREEN, "solid"), "policy": (PURPLE, (0, (4, 2)))}
_WAITS_FOR = {"learner": "waits for experience", "evaluator": "waits for its time"}
_MAX_ARROWS = 6
_BAR, _IDLE_BAR = 0.62, 0.3  # heights, where rows are 1 apart
_LEAST_SHARE = 1 / 600  # of the window's width: a shorter span is drawn this wide


@dataclass(frozen=True, slots=True)
class Data:
    """A run's timeline, and what to say about the run."""

    timeline: Timeline
    view: View
    subtitle: str


def read(wish: Wish) -> Data:
    assert wish.run is not None
    run_dir = find_run(wish.run)
    timeline = read_trace(newest_trace(run_dir))
    config = load_config(run_dir / CONFIG_FILE)
    view = look(timeline, choose(timeline, wish.from_s, wish.for_s))
    run = f"{config.env}, {config.algorithm.name}, {config.engine} engine, run {run_dir.name}"
    return Data(timeline, view, run)


def draw(data: Data) -> Figure:
    roles = sorted(data.timeline.spans, key=_turn)
    figure = new_figure(12.5, 1.9 + 0.72 * len(roles))
    axes = figure.subplots()
    view = data.view
    shown = [name for name in LEGEND if any(_names(view, role, name) for role in roles)]
    for row, role in enumerate(roles):
        axes.axhline(row, color="#e5e7eb", linewidth=0.8, zorder=0)
        for name in shown:
            _draw_spans(axes, view, role, row, name)
        _say_idle(axes, data.timeline, role, row)
    for name in _ARROWS:
        for arrow in _some([arrow for arrow in view.arrows if arrow.name == name]):
            _draw_arrow(axes, view, arrow, roles)
    _label(figure, axes, data, roles, shown)
    return figure


def _turn(role: str) -> tuple[int, int, str]:
    """Actors first, in their order, then as the data goes on."""
    kind, _, number = role.partition("-")
    order = ("actor", "buffer", "learner", "evaluator")
    return order.index(kind), int(number or 0), role


def _names(view: View, role: str, name: str) -> bool:
    return any(span.name == name for span in view.spans[role])


def _draw_spans(axes: Any, view: View, role: str, row: int, name: str) -> None:
    least_ms = view.window.length_s * 1e3 * _LEAST_SHARE
    bars = []
    for span in view.spans[role]:
        if span.name == name:
            start_ms = view.to_ms(max(span.start_s, view.window.start_s))
            end_ms = view.to_ms(min(span.end_s, view.window.end_s))
            bars.append((start_ms, max(end_ms - start_ms, least_ms)))
    height = _IDLE_BAR if name in IDLE else _BAR
    hatch = "////" if name == "paced" else None
    axes.broken_barh(
        bars, (row - height / 2, height), facecolors=LEGEND[name][1], edgecolor="white",
        linewidth=0.0, hatch=hatch, zorder=2,
    )  # fmt: skip


def _say_idle(axes: Any, timeline: Timeline, role: str, row: int) -> None:
    share = timeline.shares[role].idle_share
    place: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "annotation_clip": False}
    axes.annotate(
        f"idle {share * 100:.0f} %", (1.012, row), xytext=(0, 1), textcoords="offset points",
        va="bottom", fontsize=11, fontweight="bold", color=BLACK, **place,
    )  # fmt: skip
    axes.annotate(
        why_idle(timeline, role), (1.012, row), xytext=(0, -1), textcoords="offset points",
        va="top", fontsize=8.5, color=QUIET, **place,
    )  # fmt: skip


def why_idle(timeline: Timeline, role: str) -> str:
    """In words, what a role mostly waits for."""
    times_s = dict.fromkeys(IDLE, 0.0)
    for span in timeline.spans[role]:
        if span.name in times_s:
            times_s[span.name] += span.end_s - span.start_s
    times_s["turn"] = timeline.shares[role].idle_s - sum(times_s.values())
    if timeline.shares[role].idle_share < 0.005:
        return "hardly ever waits"
    return {
        "paced": "waits for a grant: paced",
        "wait": _WAITS_FOR.get(role, "waits for the first policy"),
        "turn": "while others have their turn",
    }[max(times_s, key=lambda reason: times_s[reason])]


def _ends_in_store(view: View) -> bool:
    """Replay: an item may be sampled at any time, so its way ends where it is kept."""
    return any(a.name == "item" and a.touches[-1].role == "buffer" for a in view.arrows)


def _some(arrows: Sequence[Arrow]) -> Sequence[Arrow]:
    """A few, spread over the window: more would hide what they explain."""
    ordered = sorted(arrows, key=lambda arrow: arrow.touches[0].at_s)
    step = -(-len(ordered) // _MAX_ARROWS) or 1
    return ordered[::step]


def _draw_arrow(axes: Any, view: View, arrow: Arrow, roles: Sequence[str]) -> None:
    color, style = _ARROWS[arrow.name]
    points = [(view.to_ms(t.at_s), roles.index(t.role)) for t in arrow.touches]
    for number, (start, end) in enumerate(itertools.pairwise(points)):
        down = (end[1] > start[1]) - (end[1] < start[1])  # 0 within one row: along its middle
        is_last = number == len(points) - 2
        axes.annotate(
            "", (end[0], end[1] - down * _BAR / 2), (start[0], start[1] + down * _BAR / 2),
            arrowprops={
                "arrowstyle": "-|>" if is_last else "-", "color": color, "linewidth": 1.3,
                "linestyle": style, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 10,
            },
            zorder=4,
        )  # fmt: skip


def _label(
    figure: Figure, axes: Any, data: Data, roles: Sequence[str], shown: Sequence[str]
) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    window = data.view.window
    quieten(axes)
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    axes.set_yticks(range(len(roles)), roles, fontsize=11)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(roles) - 0.45, -0.55)
    axes.set_xlim(0, window.length_s * 1e3)
    axes.set_xlabel(f"milliseconds, from {window.start_s:.3f} s of the trace on", fontsize=9)
    versions = len(data.timeline.of_kind("publish"))
    figure.suptitle(
        "What every role did when, and how much of the whole run it was idle",
        fontsize=13, fontweight="bold", x=0.01, ha="left",
    )  # fmt: skip
    length = f"{window.length_s * 1e3:.0f} ms of {data.timeline.end_s:.1f} s, {versions} versions"
    axes.set_title(f"{data.subtitle}; {length}", fontsize=9.5, color=QUIET, loc="left", pad=8)
    patches: list[Any] = [
        Patch(
            facecolor=LEGEND[name][1], edgecolor="white" if name == "paced" else "none",
            hatch="////" if name == "paced" else None, label=LEGEND[name][0],
        )
        for name in shown
    ]  # fmt: skip
    goal = "store" if _ends_in_store(data.view) else "update"
    texts = {"item": f"an item, from actor to {goal}", "policy": "a policy, from learner to actor"}
    for name, (color, style) in _ARROWS.items():
        patches.append(Line2D([], [], color=color, linestyle=style, label=texts[name]))
    figure.legend(
        handles=patches, loc="outside lower left", ncols=5, fontsize=9, frameon=False,
        handlelength=1.6, columnspacing=1.6,
    )  # fmt: skip
