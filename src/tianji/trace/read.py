"""A trace file read back, for figures: spans by role, and arrows between them, in seconds."""

from __future__ import annotations

import gzip
import json
import shlex
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tianji.display.phrases import ENDINGS
from tianji.errors import UsageError
from tianji.observe.summary import read_summary
from tianji.trace.flows import Share


class Span(NamedTuple):
    """An activity of a role."""

    name: str
    start_s: float
    end_s: float
    about: dict[str, Any]
    """`item` or `version`; empty for a sleep."""


class Touch(NamedTuple):
    """Where an arrow meets a role."""

    role: str
    at_s: float


class Arrow(NamedTuple):
    """The way of an item (three touches, or two if it was never used) or of a policy (two)."""

    name: str
    touches: tuple[Touch, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """A whole trace. Time 0 is its first span."""

    spans: dict[str, list[Span]]
    """Spans by role, in order of time."""
    arrows: list[Arrow]
    shares: dict[str, Share]
    """Busy and idle time by role."""

    def of_kind(self, name: str) -> list[Span]:
        """Return the spans of this name of all roles, in order of time."""
        found = [span for spans in self.spans.values() for span in spans if span.name == name]
        return sorted(found, key=lambda span: span.start_s)

    @property
    def end_s(self) -> float:
        return max(spans[-1].end_s for spans in self.spans.values())


def newest_trace(run_dir: Path) -> Path:
    """Return the newest trace of a run; every resume adds one."""
    found = sorted(run_dir.glob("trace*.json.gz"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise UsageError(f"Run '{run_dir}' has no trace. {_how_to_record(run_dir)}")
    return found[-1]


def _how_to_record(run_dir: Path) -> str:
    """Say how to get a trace: a run that has reached its target or a limit cannot go on as it
    is."""
    another, summary = "Record one with `tianji train PRESET --trace`", read_summary(run_dir)
    because = "interrupted" if summary is None else summary["stopped_because"]
    if because in ("interrupted", "failed"):
        resume = f"`tianji resume {shlex.quote(run_dir.name)} --trace`"
        return f"{another}, or go on with this run with {resume}."
    return f"{another}; this run is over ({ENDINGS[because].words})."


def read_trace(path: Path) -> Timeline:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            content = json.load(file)
        events = content["traceEvents"]
        shares = content["otherData"]["roles"]
    except (OSError, EOFError, ValueError, KeyError) as error:
        raise UsageError(f"Cannot read the trace '{path}': {error}") from error
    tracks = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    spans: dict[str, list[Span]] = defaultdict(list)
    touches: dict[tuple[str, int], list[Touch]] = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            start_s = event["ts"] / 1e6
            end_s = start_s + event["dur"] / 1e6
            span = Span(event["name"], start_s, end_s, event.get("args", {}))
            spans[tracks[event["tid"]]].append(span)
        elif event["ph"] in ("s", "t", "f"):
            touch = Touch(tracks[event["tid"]], event["ts"] / 1e6)
            touches[event["name"], event["id"]].append(touch)
    for found in spans.values():
        found.sort(key=lambda span: span.start_s)
    arrows = [Arrow(name, tuple(met)) for (name, _), met in touches.items()]
    times = {name: Share(role["busy_s"], role["idle_s"]) for name, role in shares.items()}
    return Timeline(dict(spans), arrows, times)
