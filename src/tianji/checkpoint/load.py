"""Finds, verifies and reads checkpoints."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from dataclasses import fields
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
    """A verified checkpoint: Choice(path, note="")."""

    path: Path
    note: str
    """The reason why it is not the requested one; "" if it is."""


def list_checkpoints(run_dir: Path) -> list[Path]:
    """Return the finished checkpoints of a run, oldest first, without opening them."""
    folder = checkpoints_folder(run_dir)
    found = [] if not folder.is_dir() else [(version_of(p.name), p) for p in folder.iterdir()]
    return [path for _, path in sorted((v, p) for v, p in found if v is not None)]


def read_manifest(path: Path) -> Manifest:
    """Return the manifest of one checkpoint; CheckpointError if it is missing or altered."""
    content = _parse(path)
    written = content.get("format")
    if isinstance(written, int) and written > FORMAT:
        raise CheckpointError(
            f"Checkpoint {path} was written by a newer TianJi (format {written}; this one reads "
            f"up to {FORMAT}). Upgrade with: pip install --upgrade tianji"
        )
    if not is_unaltered(content):
        raise CheckpointError(f"Checkpoint {path} was altered: checksum mismatch in {MANIFEST}.")
    content["files"] = {name: Stored(**stored) for name, stored in content["files"].items()}
    return Manifest(**{field.name: content[field.name] for field in fields(Manifest)})


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
        raise CheckpointError(f"Checkpoint {path} was altered: {MANIFEST} is not a JSON object.")
    return content


def verify(path: Path, *, weights_only: bool = False) -> Manifest:
    """Check the manifest and the hash of every file, or of the weights only."""
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
    """Verify and read a checkpoint; `weights_only` skips the state, which may be large."""
    manifest = verify(path, weights_only=weights_only)
    state = {} if weights_only else unflatten(manifest.state, TensorReader(path / STATE))
    return Snapshot(manifest.version, read_tensors(path / WEIGHTS), state, manifest.facts)


def latest(run_dir: Path, *, weights_only: bool = False) -> Choice:
    """Return the newest checkpoint that passes verification."""
    return _first_valid(run_dir, list_checkpoints(run_dir)[::-1], weights_only)


def best(run_dir: Path, *, weights_only: bool = False) -> Choice:
    """Return the best checkpoint; the newest one if none has a return or the best is damaged."""
    candidates = list_checkpoints(run_dir)[::-1]
    marked = _marked(run_dir) or _highest_return(candidates)
    return _first_valid(run_dir, [*([marked] if marked else []), *candidates], weights_only)


def choose(run_dir: Path, which: str, *, weights_only: bool = False) -> Choice:
    """Return `best`, `latest`, or one by its name (`v00000160`) or version (`160`)."""
    if find := {"best": best, "latest": latest}.get(which):
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
    """Return the checkpoint with the highest return, for the case that best.json is damaged."""
    rated: dict[Path, tuple[float, int]] = {}
    for path in candidates:
        with contextlib.suppress(CheckpointError):
            manifest = read_manifest(path)
            if manifest.mean_return_100 is not None:
                rated[path] = manifest.mean_return_100, manifest.version
    return max(rated, key=rated.__getitem__, default=None)


def _first_valid(run_dir: Path, candidates: Iterable[Path], weights_only: bool) -> Choice:
    problems: list[str] = []
    for path in candidates:
        try:
            manifest = verify(path, weights_only=weights_only)
        except CheckpointError as error:
            problems.append(str(error))
        else:
            return Choice(path, _fallback_note(manifest, problems) if problems else "")
    if problems:
        raise CheckpointError(f"Run {run_dir} has no valid checkpoint. {' '.join(problems)}")
    raise CheckpointError(
        f"Run {run_dir} has no checkpoint yet. One is written every checkpoint.period_s seconds "
        "and at the end of a run."
    )


def _fallback_note(manifest: Manifest, problems: list[str]) -> str:
    name = folder_name(manifest.version)
    untrained = ", which is untrained (0 updates)" if manifest.facts.get("updates") == 0 else ""
    problem = " ".join(dict.fromkeys(problems))  # the best one may also be the newest
    return f"{problem} The newest valid checkpoint is used instead: {name}{untrained}."
