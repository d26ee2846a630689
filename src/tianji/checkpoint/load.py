"""Finding, checking and reading checkpoints."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from tianji.checkpoint.durable import Stored, measure_file
from tianji.checkpoint.schema import (
    BEST,
    FORMAT,
    MANIFEST,
    STATE,
    WEIGHTS,
    Manifest,
    Snapshot,
    checkpoints_folder,
    folder_name,
    is_unaltered,
    version_of,
)
from tianji.checkpoint.tensors import TensorReader, read_tensors
from tianji.checkpoint.tree import unflatten
from tianji.errors import CheckpointError, UsageError


class Choice(NamedTuple):
    """A checkpoint that verifies."""

    path: Path
    note: str
    """Why it is not the one that was asked for; "" where it is."""


def list_checkpoints(run_dir: Path) -> list[Path]:
    """Finished checkpoints of a run, oldest first; nothing is opened."""
    folder = checkpoints_folder(run_dir)
    found = [] if not folder.is_dir() else [(version_of(p.name), p) for p in folder.iterdir()]
    return [path for _, path in sorted((v, p) for v, p in found if v is not None)]


def read_manifest(path: Path) -> Manifest:
    """The manifest of one checkpoint, or a CheckpointError that says what is wrong with it."""
    content = _parse(path)
    written = content.get("format")
    if isinstance(written, int) and written > FORMAT:
        raise CheckpointError(
            f"Checkpoint {path} was written by a newer TianJi (format {written}; this one reads "
            f"up to {FORMAT}). Upgrade with: pip install --upgrade tianji"
        )
    if not is_unaltered(content):
        raise CheckpointError(f"Checkpoint {path} was altered: {MANIFEST} is not as written.")
    return Manifest(
        version=content["version"],
        facts=content["facts"],
        files={name: Stored(**stored) for name, stored in content["files"].items()},
        tree=content["state"],
        made_with=content["made_with"],
        created=content["created"],
    )


def _parse(path: Path) -> dict[str, Any]:
    if not path.is_dir():
        raise CheckpointError(f"There is no checkpoint at {path}.")
    try:
        content = json.loads((path / MANIFEST).read_bytes())
    except FileNotFoundError:
        raise CheckpointError(f"Checkpoint {path} is incomplete: {MANIFEST} is missing.") from None
    except (OSError, ValueError) as error:
        raise CheckpointError(f"Checkpoint {path} cannot be read: {MANIFEST}: {error}") from error
    if not isinstance(content, dict):
        raise CheckpointError(f"Checkpoint {path} was altered: {MANIFEST} holds no object.")
    return content


def verify(path: Path, *, weights_only: bool = False) -> Manifest:
    """Check the manifest and the hash of every file (or of the weights alone)."""
    manifest = read_manifest(path)
    for name in (WEIGHTS,) if weights_only else (WEIGHTS, STATE):
        try:
            found = measure_file(path / name)
        except FileNotFoundError:
            raise CheckpointError(f"Checkpoint {path} is incomplete: {name} is missing.") from None
        except OSError as error:
            raise CheckpointError(f"Checkpoint {path} cannot be read: {error}") from error
        wanted = manifest.files.get(name)
        if found != wanted:
            raise CheckpointError(
                f"Checkpoint {path} was altered: checksum mismatch in {name}: manifest says "
                f"{_in_words(wanted)}, file has {_in_words(found)}. Use an older checkpoint, or "
                "train again."
            )
    return manifest


def _in_words(stored: Stored | None) -> str:
    if stored is None:
        return "nothing"
    return f"{stored.size_bytes} bytes with sha256 {stored.sha256[:12]}..."


def read_checkpoint(path: Path, *, weights_only: bool = False) -> Snapshot:
    """Verify a checkpoint and read it; `weights_only` leaves the (possibly large) state out."""
    manifest = verify(path, weights_only=weights_only)
    state = {} if weights_only else unflatten(manifest.tree, TensorReader(path / STATE))
    return Snapshot(manifest.version, read_tensors(path / WEIGHTS), state, manifest.facts)


def latest(run_dir: Path, *, weights_only: bool = False) -> Choice:
    """The newest checkpoint that verifies."""
    return _first_sound(run_dir, reversed(list_checkpoints(run_dir)), weights_only)


def best(run_dir: Path, *, weights_only: bool = False) -> Choice:
    """The checkpoint marked as best. The newest that verifies where none is marked, because no
    checkpoint has a return yet, and where the marked one is damaged."""
    candidates = list(reversed(list_checkpoints(run_dir)))
    marked = _marked(run_dir) or _highest_return(candidates)
    if marked is not None:
        candidates.insert(0, marked)
    return _first_sound(run_dir, candidates, weights_only)


def choose(run_dir: Path, which: str, *, weights_only: bool = False) -> Choice:
    """`best`, `latest`, or one by its name (`v00000160`) or version (`160`)."""
    if which in {"best", "latest"}:
        find = best if which == "best" else latest
        return find(run_dir, weights_only=weights_only)
    name = folder_name(int(which)) if which.isdecimal() else which
    known = {path.name: path for path in list_checkpoints(run_dir)}
    if name not in known:
        raise UsageError(
            f"Run {run_dir} has no checkpoint '{which}'. It has: "
            f"{', '.join(['best', 'latest', *known]) if known else 'none'}."
        )
    verify(known[name], weights_only=weights_only)
    return Choice(known[name], "")


def _marked(run_dir: Path) -> Path | None:
    folder = checkpoints_folder(run_dir)
    try:
        name = str(json.loads((folder / BEST).read_bytes())["checkpoint"])
        return folder / name if version_of(name) is not None else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _highest_return(candidates: Iterable[Path]) -> Path | None:
    """The checkpoint that best.json would name: it may be damaged while they are sound."""
    rated: dict[Path, tuple[float, int]] = {}
    for path in candidates:
        with contextlib.suppress(CheckpointError):
            manifest = read_manifest(path)
            if manifest.mean_return_100 is not None:
                rated[path] = manifest.mean_return_100, manifest.version
    return max(rated, key=rated.__getitem__, default=None)


def _first_sound(run_dir: Path, candidates: Iterable[Path], weights_only: bool) -> Choice:
    problems: list[str] = []
    for path in candidates:
        try:
            manifest = verify(path, weights_only=weights_only)
        except CheckpointError as error:
            problems.append(str(error))
        else:
            return Choice(path, _fallback_note(manifest, problems))
    if problems:
        raise CheckpointError(f"Run {run_dir} has no sound checkpoint. {' '.join(problems)}")
    raise CheckpointError(
        f"Run {run_dir} has no checkpoint yet. One is written every checkpoint.period_s seconds "
        "and at the end of a run."
    )


def _fallback_note(manifest: Manifest, problems: list[str]) -> str:
    if not problems:
        return ""
    name = folder_name(manifest.version)
    untrained = ", which is untrained (0 updates)" if manifest.facts.get("updates") == 0 else ""
    problem = " ".join(dict.fromkeys(problems))  # the best may be the newest too
    return f"{problem} The newest sound checkpoint is used instead: {name}{untrained}."
