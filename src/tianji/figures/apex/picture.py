"""Figures 4 (a) and (b): TianJi against Ape-X on Pong, returns over time, and throughput."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tianji.figures import style
from tianji.figures.estimates import few_seeds
from tianji.figures.files import Data, Point
from tianji.wording import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = {
    "pong-dqn": "TianJi: DQN in its serial ratio",
    "pong-apex": "Ape-X: free-running, prioritised",
}
COLORS = {"pong-dqn": style.BLUE, "pong-apex": style.RED}
SHARED_GPU = "GPU: both runs together, which ran side by side"


def draw_returns(data: Data) -> Figure:
    """Draw returns over minutes: of training, and of the greedy policy where it was evaluated."""
    figure = style.new_figure(8.6, 5.4, "TianJi against Ape-X on Pong: returns over time")
    axes = figure.subplots()
    for run in data["points"]:
        color, label = COLORS[run["preset"]], NAMES[run["preset"]]
        axes.plot(*_along(run, "return"), color=color, linewidth=1.8, label=_once(axes, label))
        minutes, returns = _along(run, "greedy_return")
        if returns:
            looks: dict[str, Any] = {"color": color, "markersize": 4, "fillstyle": "none"}
            greedy = _once(axes, f"{label}, greedy policy")
            axes.plot(minutes, returns, "o", label=greedy, **looks)
    style.quieten(axes)
    axes.set(
        xlabel="minutes of training",
        ylabel="mean return of the last 100 games",
        xlim=(0, data["minutes"]),
        ylim=(-22, 22),
    )
    style.subtitle(axes, _where(data))
    style.legend_below(figure, ncols=2)
    return figure


def _once(axes: Any, label: str) -> str | None:
    """Return the label for the first line of its kind; None for those of further seeds."""
    return None if label in axes.get_legend_handles_labels()[1] else label


def _along(run: Point, name: str) -> tuple[list[float], list[float]]:
    known = [point for point in run["curve"] if point[name] is not None]
    return [point["seconds"] / 60 for point in known], [point[name] for point in known]


def _where(data: Data) -> str:
    machine = data["machine"]
    cores = [run["cores"] or machine["cores"] for run in data["points"]]
    how = "side by side" if data["side_by_side"] else "one after the other"
    gpu = data["gpu"] or "no GPU"
    count = len({run["seed"] for run in data["points"]})
    seeds = few_seeds(count) or f"{counted(count, 'seed')} each"
    return f"{machine['cpu']}, {min(cores)} cores each, {gpu}; {how}; {seeds}"


def _settled(name: str) -> Callable[[Point], float | None]:
    return lambda run: (run["settled"] or {}).get(name)


def _from_summary(key: str, name: str) -> Callable[[Point], float | None]:
    def find(run: Point) -> float | None:
        found: Mapping[str, Any] = (run["summary"] or {}).get(key) or {}
        return found.get(name)

    return find


BARS: Sequence[tuple[str, str, Callable[[Point], float | None]]] = (
    ("environment steps per second", "{:,.0f}", _settled("steps_per_s")),
    ("transitions trained per second", "{:,.0f}", _settled("trained_per_s")),
    ("updates per second", "{:,.0f}", _settled("updates_per_s")),
    ("GPU busy share", "{:.0%}", _settled("gpu_busy_share")),
    ("times that a step is used", "{:.1f}", _from_summary("ratio", "actual")),
    ("lag, versions", "{:.2f}", _from_summary("lag_versions", "mean")),
)


def draw_throughput(data: Data) -> Figure:
    """Draw a bar for each run and quantity; several seeds are averaged."""
    figure = style.new_figure(11.0, 6.4, "TianJi against Ape-X on Pong: what the machine does")
    panels = figure.subplots(2, 3).flat
    for axes, (label, shown, find) in zip(panels, BARS, strict=True):
        for place, preset in enumerate(NAMES):
            values = [find(run) for run in data["points"] if run["preset"] == preset]
            known = [value for value in values if value is not None]
            mean = sum(known) / len(known) if known else 0.0
            axes.bar(place, mean, color=COLORS[preset], width=0.6, label=NAMES[preset])
            text = shown.format(mean) if known else "not measured"
            axes.annotate(text, (place, mean), (0, 3), textcoords="offset points", ha="center")
        style.quieten(axes)
        axes.set_xticks([])
        axes.yaxis.set_major_formatter("{x:,g}")
        axes.margins(y=0.2)
        axes.set_title(label, fontsize=10, loc="left")
    about = [_where(data)]
    if data["side_by_side"] and data["gpu"]:
        about.append(SHARED_GPU)
    style.legend_below(figure, ncols=2, about="\n".join(about))
    return figure
