"""The finished runs on disk, one file each, so that several processes can work side by side."""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.zoo.tasks import Job, is_our_own
from tianji.config.files import load_preset

NUM_POINTS = 25
REPLACED = {"target_return", "max_env_steps"}
"""Settings of a preset that the zoo replaces with its own."""
SAME_STARTS = ", same starts"
"""Marks runs whose greedy episodes begin in the same states as those of the peer."""
Result = dict[str, Any]


class Runs:
    """Finished runs by name, and claims on those in work."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def find(self, job: Job) -> Result | None:
        """Return the result of a run, unless its length or its preset has changed since."""
        path = self.folder / f"{job.name}.json"
        if not path.exists():
            return None
        found: Result = json.loads(path.read_text())
        is_same = found["env_steps"] == job.row.env_steps and found["settings"] == settings_of(job)
        return found if is_same else None

    def add(self, job: Job, result: Result) -> None:
        path = self.folder / f"{job.name}.json"
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps(result) + "\n")
        draft.replace(path)

    @contextmanager
    def claim(self, job: Job) -> Iterator[bool]:
        """Say whether this run is ours to make; a claim ends with the process that has it."""
        path = self.folder / f".{job.name}.claim"
        with path.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            try:
                yield True
            finally:
                path.unlink(missing_ok=True)


@cache
def _digest(preset: str) -> str:
    config = load_preset(preset).config
    text = json.dumps({key: config[key] for key in config.keys() - REPLACED}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def settings_of(job: Job) -> str:
    """Return what tells apart runs with different settings: a digest of the preset, and RL Zoo's
    version for the peer, whose numbers are fixed."""
    if job.contestant != "tianji":
        return "rl_zoo3 2.9.2"
    return _digest(job.row.preset) + ("" if is_our_own(job.row.env) else SAME_STARTS)


def curve(episodes: Sequence[tuple[int, float]], env_steps: int) -> list[list[float]]:
    """Return [steps, mean training return of the episodes that ended in that 25th of the run]."""
    sums = [[0.0, 0] for _ in range(NUM_POINTS)]
    steps = 0
    for length, episode_return in episodes:
        steps += length
        place = min(steps * NUM_POINTS // env_steps, NUM_POINTS - 1)
        sums[place][0] += episode_return
        sums[place][1] += 1
    width = env_steps / NUM_POINTS
    return [
        [round((place + 0.5) * width), round(total / count, 3)]
        for place, (total, count) in enumerate(sums)
        if count
    ]
