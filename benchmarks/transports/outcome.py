"""What is made of the figures: tables, checks, and the data files of the figures."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import ROOT, Report, commit, machine_facts, median, ratio, spread, versions
from benchmarks.transports.jobs import OURS, Figures
from benchmarks.transports.points import ACTORS, KB, MB, MESSAGES, MIDDLE, Point, points_of

FIGURE_DATA = ROOT / "src" / "tianji" / "figures" / "data"
NOT_IN_FIGURES = ("process_s", "failed_tries")

AT_LEAST_OF_MEMCPY = {2 * MB: 0.8, 512 * KB: 0.7, 64 * KB: 0.5}
AT_LEAST_OF_PEERS = {"iceoryx2": 1.0, "iceoryx2-poll": 1.0, "mpi": 1.0, "ray": 20.0}
AT_LEAST_AT_4K = 2.0
PEERS_AT_4K = ("mp-pipe", "zmq-ipc", "zmq-tcp", "iceoryx2", "iceoryx2-poll")
AT_MOST_OF_BOUND = 1.05


class Results:
    """Every run, by transport and by place: a point without its number of messages."""

    def __init__(self) -> None:
        self.transports: list[str] = []
        self._runs: dict[tuple[str, Point], list[Figures]] = {}

    def add(self, transport: str, point: Point, figures: Figures) -> None:
        if transport not in self.transports:
            self.transports.append(transport)
        self._runs.setdefault((transport, point.with_messages(0)), []).append(figures)

    def runs(self, transport: str, point: Point) -> list[Figures]:
        return self._runs.get((transport, point.with_messages(0)), [])

    def values(self, transport: str, point: Point, key: str) -> list[float | None]:
        return [run.get(key) for run in self.runs(transport, point)]

    def median(self, transport: str, point: Point, key: str = "messages_per_s") -> float | None:
        found = [value for value in self.values(transport, point, key) if value is not None]
        return median(found)

    def failed_tries(self, transport: str) -> int:
        return sum(
            run["failed_tries"]
            for (name, _), runs in self._runs.items()
            if name == transport
            for run in runs
        )


# --------------------------------------------------------------------------------------- tables


def show(report: Report, results: Results, parts: Sequence[str], points: list[Point]) -> None:
    """The tables of the parts that were run."""
    places = [point.with_messages(0) for point in points]
    for part in parts:
        chosen = [point for point in points_of(part) if point.with_messages(0) in places]
        if part == "c":
            title = "(c) seconds for 10,000 messages, scaled where fewer were sent"
            _table(report, results, title, chosen, _seconds)
            continue
        _table(report, results, f"({part}) messages per second", chosen, _rate)
        _table(report, results, f"({part}) megabytes per second", chosen, _megabytes)
        title = f"({part}) microseconds of processor time per message, senders + receiver"
        _table(report, results, title, chosen, _processor)


Cell = Callable[[Results, str, Point], str]


def _table(report: Report, results: Results, title: str, points: list[Point], cell: Cell) -> None:
    rows = [
        [
            transport,
            *(cell(results, transport, point) for point in points),
            _tries(results, transport),
        ]
        for transport in results.transports
    ]
    if cell is _megabytes:
        copies = [results.median(OURS, point, "memcpy_mb_per_s") for point in points]
        rows.append(["memory copy", *(f"{speed:,.0f}" if speed else "-" for speed in copies), ""])
    if cell is _seconds:
        pauses = [_bound_s(results, point) for point in points]
        rows.append(
            ["the pauses alone", *(f"{pause:.2f}" if pause else "-" for pause in pauses), ""]
        )
    report.table(title, ["transport", *(point.label for point in points), "failed tries"], rows)


def _bound_s(results: Results, point: Point) -> float | None:
    """Seconds that 10,000 messages take if only the senders' own sample time counts."""
    sample_s = results.median(OURS, point, "measured_sample_s")
    return None if sample_s is None else sample_s * MESSAGES / point.actors


def _tries(results: Results, transport: str) -> str:
    return str(results.failed_tries(transport) or "")


def _rate(results: Results, transport: str, point: Point) -> str:
    return _cell(results.values(transport, point, "messages_per_s"), 0)


def _megabytes(results: Results, transport: str, point: Point) -> str:
    speed = results.median(transport, point, "mb_per_s")
    return "-" if speed is None else f"{speed:,.0f}"


def _seconds(results: Results, transport: str, point: Point) -> str:
    return _cell(results.values(transport, point, "collection_s_per_10k"), 2)


def _processor(results: Results, transport: str, point: Point) -> str:
    ends = [results.median(transport, point, f"{end}_cpu_us") for end in ("sender", "receiver")]
    return " + ".join("-" if used is None else f"{used:.1f}" for used in ends)


def _cell(values: list[float | None], digits: int) -> str:
    return spread(values, digits) if values else "-"


# --------------------------------------------------------------------------------------- checks


def check(report: Report, results: Results) -> None:
    """Hold what was measured against the bounds; what was not measured is left out."""
    print()
    for size, bound in AT_LEAST_OF_MEMCPY.items():
        share = results.median(OURS, Point(size), "share_of_memcpy")
        if share is not None:
            what = f"{Point(size).label}, kept: share of the memory-copy speed"
            report.check(what, share, ">=", bound)
    for point in points_of("b"):
        for peer, bound in AT_LEAST_OF_PEERS.items():
            _check_ratio(report, results, point, peer, bound)
    for peer in PEERS_AT_4K:
        _check_ratio(report, results, Point(4 * KB), peer, AT_LEAST_AT_4K)
    for actors in ACTORS:
        _check_bound(report, results, Point(MIDDLE, actors, 1e-3))


def _check_ratio(report: Report, results: Results, point: Point, peer: str, bound: float) -> None:
    ours, theirs = results.median(OURS, point), results.median(peer, point)
    if ours is not None and theirs is not None:
        kind = "" if point.is_copying else ", kept"
        report.check(f"{point.label}{kind}: ours / {peer}", ratio(ours, theirs), ">=", bound)


def _check_bound(report: Report, results: Results, point: Point) -> None:
    """Collection time over what the senders' own pauses alone take."""
    over = [
        run["collection_s"] * point.actors / (run["messages"] * run["measured_sample_s"])
        for run in results.runs(OURS, point)
        if "failed" not in run
    ]
    if over:
        what = f"{point.label}: collection time / the senders' measured sample time"
        report.check(what, median(over), "<=", AT_MOST_OF_BOUND)


# -------------------------------------------------------------------------------------- figures


def write_figure_data(results: Results, command: str, peers: dict[str, Any]) -> list[Path]:
    """The data of the two figures: message sizes (5a), and sample times over actors (5b)."""
    wanted = {"tianji-5a": points_of("a"), "tianji-5b": [*points_of("b"), *points_of("c")]}
    written = []
    for name, points in wanted.items():
        content = {
            "figure": name,
            "command": command,
            "commit": commit(),
            "machine": machine_facts(),
            "versions": {**versions(), **peers},
            "points": _figure_points(results, points),
        }
        FIGURE_DATA.mkdir(parents=True, exist_ok=True)
        path = FIGURE_DATA / f"{name}.json"
        path.write_text(json.dumps(content, indent=1) + "\n")
        written.append(path)
    return written


def _figure_points(results: Results, points: list[Point]) -> list[Figures]:
    return [
        {key: value for key, value in run.items() if key not in NOT_IN_FIGURES}
        for transport in results.transports
        for point in points
        for run in results.runs(transport, point)
        if "failed" not in run
    ]
