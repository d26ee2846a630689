"""Merges what the processes of several runs recorded into one list of files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

WATCHING = ("checkpoint", "display", "explain", "observe", "trace")
"""Rooms that look at the run. No experience passes through them."""
# In the order in which experience passes them; any other process comes after these.
ORDER = ("actor", "buffer", "learner", "root")

Visits = Sequence[Sequence[str]]


@dataclass
class Stop:
    """One file on the path."""

    file: str
    functions: list[str] = field(default_factory=list)
    processes: list[str] = field(default_factory=list)

    @property
    def is_watching(self) -> bool:
        return self.file.partition("/")[0] in WATCHING

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "is_watching": self.is_watching}


def kind_of(process: str) -> str:
    """`actor-3` is an `actor`: actors all run the same code."""
    return process.rstrip("0123456789").rstrip("-")


def merge(run: Iterable[Mapping[str, Any]], has_supervisor: bool) -> dict[str, Stop]:
    """Return the files of one run in the order of their first visit, actors first.

    The supervisor of a run with workers is left out: it starts and watches the workers, and
    experience does not pass through it.
    """
    parts = [part for part in run if not (has_supervisor and part["process"] == "root")]
    stops: dict[str, Stop] = {}
    for part in sorted(parts, key=lambda part: _rank(kind_of(part["process"]))):
        for file, function in part["visits"]:
            stop = stops.setdefault(file, Stop(file))
            _add(stop.functions, function)
            _add(stop.processes, kind_of(part["process"]))
    return stops


def visited_always(runs: Sequence[Mapping[str, Stop]]) -> tuple[list[Stop], list[Stop]]:
    """Return the files that every run visited, and those that only some did.

    What happens once a second happens in some windows only, so this tells it from the path.
    """
    union: dict[str, Stop] = {}
    for run in runs:
        for file, stop in run.items():
            known = union.setdefault(file, Stop(file))
            for function in stop.functions:
                _add(known.functions, function)
            for process in stop.processes:
                _add(known.processes, process)
    always = [stop for file, stop in union.items() if all(file in run for run in runs)]
    return always, [stop for stop in union.values() if stop not in always]


def _rank(kind: str) -> int:
    return ORDER.index(kind) if kind in ORDER else len(ORDER)


def _add(names: list[str], name: str) -> None:
    if name not in names:
        names.append(name)
