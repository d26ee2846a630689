"""Sets of checkpoints of a run with several groups: which checkpoint of each group goes together.

    RUN/checkpoints.json              the newest sets, the last one last
    RUN/groups/0/checkpoints/...      the checkpoints of each group
    RUN/groups/1/checkpoints/...

A run that has once had several groups keeps this form, whatever number it continues with.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tianji.checkpoint.durable import replace_json
from tianji.checkpoint.load import list_checkpoints, read_manifest, verify
from tianji.checkpoint.schema import STATE
from tianji.checkpoint.tensors import TensorReader
from tianji.checkpoint.tree import unflatten
from tianji.errors import CheckpointError

SETS_FILE = "checkpoints.json"
KEPT_SETS = 3


@dataclass(frozen=True, slots=True)
class CheckpointSet:
    """CheckpointSet(("groups/0/checkpoints/v00000160", ...), 160, 7_680, 41_000, progress)"""

    checkpoints: tuple[str, ...]
    """Path of each learner's checkpoint in the run's folder."""
    version: int
    """Highest version of the run."""
    updates: int
    """Updates of all groups."""
    env_steps: int
    """Environment steps of the whole run."""
    progress: dict[str, Any]
    """How far the run has come (learner/progress.py)."""
    learners_per_group: int = 1
    """Learners of a group have consecutive checkpoints."""


@dataclass(frozen=True, slots=True)
class SavedGroups:
    """Where the groups of a run continue: the set, with what was verified."""

    paths: tuple[Path, ...]
    """The checkpoint of each saved learner; those of a group follow each other."""
    group_steps: tuple[int, ...]
    """Environment steps that each of them counts."""
    group_updates: tuple[int, ...]
    found: CheckpointSet
    note: str = ""
    """The reason why it is not the newest set; "" if it is."""

    @property
    def num_groups(self) -> int:
        return len(self.paths) // self.found.learners_per_group

    def source_of(self, learner: int, learners_per_group: int) -> int:
        """Return the saved learner that a learner continues from: one of the group with the same
        number modulo the number of saved groups, because learners of a group must be equal."""
        group, rank = divmod(learner, learners_per_group)
        each = self.found.learners_per_group
        return group % self.num_groups * each + rank % each


def group_folder(run_dir: Path, group: int) -> Path:
    """Return the folder of one group of a run with several."""
    return run_dir / "groups" / str(group)


def has_groups(run_dir: Path) -> bool:
    """Return whether a run has or had several groups."""
    return group_folder(run_dir, 0).is_dir()


def main_folder(run_dir: Path) -> Path:
    """Return the folder whose checkpoints stand for the run: that of group 0, if it has groups."""
    return group_folder(run_dir, 0) if has_groups(run_dir) else run_dir


def add_set(run_dir: Path, new: CheckpointSet) -> None:
    """Append a set to the manifest; sets whose checkpoints are gone are dropped."""
    sets = [s for s in _read(run_dir) if all((run_dir / path).is_dir() for path in s.checkpoints)]
    kept = [*sets, new][-KEPT_SETS:]
    replace_json(run_dir / SETS_FILE, {"format": 1, "sets": [asdict(s) for s in kept]})


def newest_set(run_dir: Path) -> SavedGroups:
    """Return the newest set whose checkpoints are all intact; CheckpointError without one."""
    problems: list[str] = []
    for found in reversed(_read(run_dir)):
        paths = tuple(run_dir / path for path in found.checkpoints)
        try:
            facts = [verify(path).facts for path in paths]
        except CheckpointError as error:
            problems.append(str(error))
        else:
            note = " ".join([*problems, "An older set is used instead."]) if problems else ""
            return _saved(paths, facts, found, note)
    why = " ".join(problems) or f"{SETS_FILE} names none."
    raise CheckpointError(f"Run {run_dir} has no valid set of checkpoints. {why}")


def as_set(checkpoint: Path, run_dir: Path) -> SavedGroups:
    """Return the checkpoint of a run with one group as a set."""
    manifest = read_manifest(checkpoint)
    tree = manifest.state.get("progress", {})
    progress = unflatten(tree, TensorReader(checkpoint / STATE))
    facts, name = manifest.facts, str(checkpoint.relative_to(run_dir))
    updates, steps = facts.get("updates") or 0, facts.get("env_steps") or 0
    found = CheckpointSet((name,), manifest.version, updates, steps, progress)
    return _saved((checkpoint,), [facts], found)


def _saved(
    paths: tuple[Path, ...],
    facts: Sequence[Mapping[str, Any]],
    found: CheckpointSet,
    note: str = "",
) -> SavedGroups:
    steps, updates = (
        tuple(some.get(name) or 0 for some in facts) for name in ("env_steps", "updates")
    )
    return SavedGroups(paths, steps, updates, found, note)


def newest_of_groups(run_dir: Path, num_groups: int) -> tuple[Path, ...] | None:
    """Return the newest checkpoint of each group; None while one of them has none."""
    saved = [list_checkpoints(group_folder(run_dir, group)) for group in range(num_groups)]
    return tuple(paths[-1] for paths in saved) if all(saved) else None


def _read(run_dir: Path) -> list[CheckpointSet]:
    try:
        content = json.loads((run_dir / SETS_FILE).read_bytes())
        return [
            CheckpointSet(
                tuple(map(str, entry["checkpoints"])),
                int(entry["version"]),
                int(entry["updates"]),
                int(entry["env_steps"]),
                entry["progress"],
                int(entry.get("learners_per_group", 1)),
            )
            for entry in content["sets"]
        ]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"'{run_dir / SETS_FILE}' cannot be read: {error}") from error
