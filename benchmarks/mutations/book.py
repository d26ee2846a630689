"""The results of one commit: kept after each trial, so that a run can be stopped and continued."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.code_lines import room_of
from benchmarks.mutations.sites import Site
from benchmarks.mutations.trial import Trial

CAUGHT = ("failed", "timeout")

Entry = dict[str, Any]


class Book:
    """Reads and writes one file of results."""

    def __init__(self, path: Path | None, facts: Mapping[str, Any]) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._content: dict[str, Any] = {**facts, "baselines": {}, "mutations": []}
        if path is not None and path.exists():
            self._content = json.loads(path.read_text())
            for key, value in facts.items():
                if self._content[key] != value:
                    raise ValueError(f"{path} has {key} {self._content[key]!r}, not {value!r}")

    @property
    def mutations(self) -> list[Entry]:
        return list(self._content["mutations"])

    def find(self, site: Site) -> Entry | None:
        return next((entry for entry in self.mutations if entry["id"] == site.id), None)

    def add(self, site: Site, trial: Trial) -> Entry:
        entry = {
            "id": site.id,
            "room": room_of(site.file),
            "function": site.function,
            "operator": site.operator,
            "ordinal": site.ordinal,
            "line": site.line,
            "before": site.before,
            "after": site.after,
            "caught": trial.outcome in CAUGHT,
            **asdict(trial),
        }
        with self._lock:
            self._content["mutations"].append(entry)
            self._write()
        return entry

    def baseline(self, room: str) -> Trial | None:
        kept = self._content["baselines"].get(room)
        return None if kept is None else Trial(**kept)

    def add_baseline(self, room: str, trial: Trial) -> None:
        with self._lock:
            self._content["baselines"][room] = asdict(trial)
            self._write()

    def _write(self) -> None:
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            half = self._path.with_suffix(".half")
            half.write_text(json.dumps(self._content, indent=1) + "\n")
            half.rename(self._path)


def room_rows(entries: Sequence[Entry], before: Sequence[Entry] = ()) -> list[list[str]]:
    """Return room, mutations, caught (and the same of another commit) for a table."""
    rows = []
    rooms = sorted({entry["room"] for entry in (*entries, *before)})
    for room in [*rooms, "total"]:
        row = [room]
        for side in (entries, before) if before else (entries,):
            ours = [entry for entry in side if room in ("total", entry["room"])]
            row += [str(len(ours)), str(sum(entry["caught"] for entry in ours))]
        rows.append(row)
    return rows
