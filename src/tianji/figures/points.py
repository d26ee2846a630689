"""Measured points behind the figures: reading, writing, and medians with their range."""

from __future__ import annotations

import itertools
import json
import platform
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata, resources
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from tianji.config.machine import read_machine
from tianji.errors import UsageError
from tianji.figures.look import BLUE, MARKERS, PALETTE

Point: TypeAlias = Mapping[str, Any]
OURS = "tianji"
MESSAGES = 10_000
"""Collection times are given for this many."""


class Measured(NamedTuple):
    """One value at several repeats."""

    at: float
    low: float
    middle: float
    high: float


@dataclass(frozen=True, slots=True)
class Series:
    """The line of one transport."""

    transport: str
    copying: bool
    values: list[Measured]

    @property
    def label(self) -> str:
        return f"{self.transport}, receiver copies" if self.copying else self.transport


def read_points(name: str) -> dict[str, Any]:
    """The data that comes with the package."""
    file = resources.files("tianji.figures").joinpath("data", f"{name}.json")
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"The data of figure {name} cannot be read: {error}") from error
    return content


def measured_here(name: str, points: Sequence[Point]) -> dict[str, Any]:
    """Points of this machine in the form of the data that comes with the package."""
    return {
        "figure": name,
        "command": f"tianji figure {name} --rerun",
        "commit": "installed",
        "machine": {"cpu": _cpu_model(), "cores": len(read_machine().cores)},
        "versions": {OURS: metadata.version(OURS)},
        "points": list(points),
    }


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def write_points(data: Mapping[str, Any], path: Path) -> None:
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def to_series(points: Sequence[Point], along: str, value: Callable[[Point], float]) -> list[Series]:
    """Medians and ranges by transport, ours first, the others by name."""
    found: dict[tuple[str, bool], dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for point in points:
        found[point["transport"], bool(point["copying"])][point[along]].append(value(point))
    made = [
        Series(
            transport,
            # A receiver that copies is worth a word only where another does not.
            copying and (transport, False) in found,
            [Measured(at, *_range(values)) for at, values in sorted(by_place.items())],
        )
        for (transport, copying), by_place in found.items()
    ]
    return sorted(made, key=lambda s: (s.transport != OURS, s.transport, s.copying))


def _range(values: Sequence[float]) -> tuple[float, float, float]:
    return min(values), statistics.median(values), max(values)


def styles(series: Sequence[Series]) -> dict[str, tuple[str, str]]:
    """A colour and a marker for every transport, the same in every panel."""
    others = sorted({s.transport for s in series} - {OURS})
    looks = itertools.cycle(zip(PALETTE[1:], MARKERS[1:], strict=True))
    return {OURS: (BLUE, MARKERS[0]), **dict(zip(others, looks, strict=False))}


def draw_series(axes: Any, series: Series, style: tuple[str, str]) -> None:
    """Medians as a line, the range as a band; ours is the thick one."""
    color, marker = style
    ours = series.transport == OURS
    at = [v.at for v in series.values]
    axes.fill_between(
        at, [v.low for v in series.values], [v.high for v in series.values], color=color,
        alpha=0.18, linewidth=0,
    )  # fmt: skip
    axes.plot(
        at, [v.middle for v in series.values], marker=marker, color=color, label=series.label,
        linewidth=2.6 if ours else 1.3, markersize=6 if ours else 4.5,
        linestyle=(0, (4, 2)) if series.copying else "solid", zorder=3 if ours else 2,
    )  # fmt: skip


def machine_text(data: Mapping[str, Any]) -> str:
    """Where the points come from, for under the title."""
    machine = data["machine"]
    return (
        f"medians and ranges; {machine['cpu']}, {machine['cores']} cores; "
        f"tianji {data['versions'].get('tianji', '')} ({data['commit']})"
    )


def collection_s(point: Point) -> float:
    return float(point["collection_s_per_10k"])
