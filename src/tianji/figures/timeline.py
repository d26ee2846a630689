"""Figure 1 of the paper for a run of one's own: what every role did when, and its idle share.

It shows a few versions, from where the run is steady.
"""

from __future__ import annotations

import itertools
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tianji.config.files import load_config
from tianji.errors import UsageError
from tianji.figures import style
from tianji.run_folder.paths import CONFIG_FILE, find_run
from tianji.trace.read import Arrow, Span, Timeline, newest_trace, read_trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VERSIONS = 3
_MARGIN = 0.04
_SKIP = 0.25  # share of the versions to leave out: the beginning is not steady


class Window(NamedTuple):
    """A stretch of a timeline."""

    start_s: float
    end_s: float

    @property
    def length_s(self) -> float:
        return self.end_s - self.start_s


@dataclass(frozen=True, slots=True)
class View:
    """The visible part of a timeline."""

    window: Window
    spans: dict[str, list[Span]]
    arrows: list[Arrow]

    def to_ms(self, at_s: float) -> float:
        """Return milliseconds from the start of the window."""
        return (at_s - self.window.start_s) * 1e3


def choose(timeline: Timeline, from_s: float | None, for_s: float | None) -> Window:
    """Return the requested window, or some versions of ordinary length without a checkpoint."""
    start_s, length_s = from_s, for_s
    if start_s is None or length_s is None:
        usual = _usual(timeline)
        start_s = usual.start_s if start_s is None else start_s
        length_s = usual.length_s if length_s is None else length_s
    window = Window(start_s, min(start_s + length_s, timeline.end_s))
    if length_s <= 0 or not 0 <= start_s < timeline.end_s:
        raise UsageError(
            f"--from-s {start_s:g} --for-s {length_s:g} shows nothing: the trace goes from 0 to "
            f"{timeline.end_s:.3f} s."
        )
    return window


def _usual(timeline: Timeline) -> Window:
    published_s = [span.start_s for span in timeline.of_kind("publish")]
    steady = published_s[int(len(published_s) * _SKIP) :]
    pairs = zip(steady, steady[VERSIONS:], strict=False)
    windows = [Window(start, end) for start, end in pairs]
    if not windows:
        return Window(0.0, timeline.end_s)
    saves = timeline.of_kind("save")
    calm = [w for w in windows if not any(_overlaps(span, w) for span in saves)] or windows
    middle_s = statistics.median(window.length_s for window in calm)
    chosen = min(calm, key=lambda window: abs(window.length_s - middle_s))
    margin_s = _MARGIN * chosen.length_s
    return Window(max(0.0, chosen.start_s - margin_s), chosen.end_s + margin_s)


def look(timeline: Timeline, window: Window) -> View:
    """Return the spans that reach into the window, and the arrows that lie in it."""
    spans = {
        role: [span for span in found if _overlaps(span, window)]
        for role, found in timeline.spans.items()
    }
    arrows = [
        arrow
        for arrow in timeline.arrows
        if all(window.start_s <= touch.at_s <= window.end_s for touch in arrow.touches)
    ]
    return View(window, spans, arrows)


def _overlaps(span: Span, window: Window) -> bool:
    return span.end_s > window.start_s and span.start_s < window.end_s


LEGEND = {
    "infer": ("① infer", style.SKY),
    "step": ("② simulate a step", style.BLUE),
    "update": ("③ update", style.RED),
    "write": ("begin or hand over an unroll", style.GREEN),
    "receive": ("receive", style.ORANGE),
    "take": ("put a batch together", style.YELLOW),
    "publish": ("publish a policy", style.PURPLE),
    "pick up": ("pick up a policy", "#8b3a78"),
    "save": ("save", style.BLACK),
    "paced": ("idle: paced", "#d1d5db"),
    "wait": ("idle: nothing to do", "#eceef1"),
}
IDLE = ("paced", "wait")
_ARROWS: dict[str, tuple[str, Any]] = {
    "item": (style.GREEN, "solid"),
    "policy": (style.PURPLE, (0, (4, 2))),
}
# What only an actor, a buffer and a learner do, in the order of the data.
_STAGES = ("write", "receive", "update")
# What a role of each stage waits for; the last is for roles outside the data's way.
_WAITS_FOR = (
    "waits for the first policy",
    "waits for items",
    "waits for experience",
    "waits for its time",
)
_MAX_ARROWS = 6
_BAR, _IDLE_BAR = 0.62, 0.3  # heights, where rows are 1 apart
_LEAST_SHARE = 1 / 600  # share of the window: a shorter span is drawn this wide


def draw_run(run: str, from_s: float | None, for_s: float | None) -> Figure:
    """Draw a run of this name or path; without a window, choose one."""
    run_dir = find_run(run)
    timeline = read_trace(newest_trace(run_dir))
    config = load_config(run_dir / CONFIG_FILE)
    view = look(timeline, choose(timeline, from_s, for_s))
    about = f"{config.env}, {config.algorithm.name}, {config.engine} engine, run {run_dir.name}"
    return draw(timeline, view, about)


def draw(timeline: Timeline, view: View, about: str) -> Figure:
    roles = sorted(timeline.spans, key=lambda role: _place(timeline, role))
    title = "What every role did when, and how much of the whole run it was idle"
    figure = style.new_figure(12.5, 1.9 + 0.72 * len(roles), title)
    axes = figure.subplots()
    shown = [name for name in LEGEND if any(_names(view, role, name) for role in roles)]
    for row, role in enumerate(roles):
        axes.axhline(row, color=style.GRID, linewidth=0.8, zorder=0)
        for name in shown:
            _draw_spans(axes, view, role, row, name)
        _label_idle(axes, timeline, role, row)
    for name in _ARROWS:
        for arrow in _some([arrow for arrow in view.arrows if arrow.name == name]):
            _draw_arrow(axes, view, arrow, roles)
    _finish_axes(axes, view.window, roles)
    window_ms, versions = view.window.length_s * 1e3, len(timeline.of_kind("publish"))
    length = f"{window_ms:.0f} ms of {timeline.end_s:.1f} s, {versions} versions"
    style.subtitle(axes, f"{about}; {length}", 9.5)
    # With replay an item may be sampled at any time: its arrow ends in the store.
    ends = {_stage(timeline, a.touches[-1].role) for a in view.arrows if a.name == "item"}
    _add_legend(figure, shown, "store" if _STAGES.index("receive") in ends else "update")
    return figure


def _place(timeline: Timeline, role: str) -> tuple[int, list[int], str]:
    """Sort roles by their stage, those of one stage by the numbers in their names."""
    return _stage(timeline, role), [int(digits) for digits in re.findall(r"\d+", role)], role


def _stage(timeline: Timeline, role: str) -> int:
    done = {span.name for span in timeline.spans[role]}
    return next((i for i, name in enumerate(_STAGES) if name in done), len(_STAGES))


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


def _label_idle(axes: Any, timeline: Timeline, role: str, row: int) -> None:
    share = timeline.shares[role].idle_share
    place: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "annotation_clip": False}
    axes.annotate(
        f"idle {share * 100:.0f} %", (1.012, row), xytext=(0, 1), textcoords="offset points",
        va="bottom", fontsize=11, fontweight="bold", color=style.BLACK, **place,
    )  # fmt: skip
    axes.annotate(
        why_idle(timeline, role), (1.012, row), xytext=(0, -1), textcoords="offset points",
        va="top", fontsize=8.5, color=style.QUIET, **place,
    )  # fmt: skip


def why_idle(timeline: Timeline, role: str) -> str:
    """Say what a role mostly waits for."""
    times_s = dict.fromkeys(IDLE, 0.0)
    for span in timeline.spans[role]:
        if span.name in times_s:
            times_s[span.name] += span.end_s - span.start_s
    times_s["turn"] = timeline.shares[role].idle_s - sum(times_s.values())
    if timeline.shares[role].idle_share < 0.005:
        return "hardly ever waits"
    return {
        "paced": "waits for a grant: paced",
        "wait": _WAITS_FOR[_stage(timeline, role)],
        "turn": "while others have their turn",
    }[max(times_s, key=lambda reason: times_s[reason])]


def _some(arrows: Sequence[Arrow]) -> Sequence[Arrow]:
    """Return a few arrows, spread over the window: more would hide the spans."""
    ordered = sorted(arrows, key=lambda arrow: arrow.touches[0].at_s)
    step = -(-len(ordered) // _MAX_ARROWS) or 1
    return ordered[::step]


def _draw_arrow(axes: Any, view: View, arrow: Arrow, roles: Sequence[str]) -> None:
    color, dashes = _ARROWS[arrow.name]
    points = [(view.to_ms(t.at_s), roles.index(t.role)) for t in arrow.touches]
    for number, (start, end) in enumerate(itertools.pairwise(points)):
        down = (end[1] > start[1]) - (end[1] < start[1])  # 0 within one row: along its middle
        is_last = number == len(points) - 2
        axes.annotate(
            "", (end[0], end[1] - down * _BAR / 2), (start[0], start[1] + down * _BAR / 2),
            arrowprops={
                "arrowstyle": "-|>" if is_last else "-", "color": color, "linewidth": 1.3,
                "linestyle": dashes, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 10,
            },
            zorder=4,
        )  # fmt: skip


def _finish_axes(axes: Any, window: Window, roles: Sequence[str]) -> None:
    style.quieten(axes)
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    axes.set_yticks(range(len(roles)), roles, fontsize=11)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(roles) - 0.45, -0.55)
    axes.set_xlim(0, window.length_s * 1e3)
    axes.set_xlabel(f"milliseconds, from {window.start_s:.3f} s of the trace on", fontsize=9)


def _add_legend(figure: Figure, shown: Sequence[str], goal: str) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    patches: list[Any] = [
        Patch(
            facecolor=LEGEND[name][1], edgecolor="white" if name == "paced" else "none",
            hatch="////" if name == "paced" else None, label=LEGEND[name][0],
        )
        for name in shown
    ]  # fmt: skip
    texts = {"item": f"an item, from actor to {goal}", "policy": "a policy, from learner to actor"}
    for name, (color, dashes) in _ARROWS.items():
        patches.append(Line2D([], [], color=color, linestyle=dashes, label=texts[name]))
    figure.legend(
        handles=patches, loc="outside lower left", ncols=5, fontsize=9, frameon=False,
        handlelength=1.6, columnspacing=1.6,
    )  # fmt: skip
