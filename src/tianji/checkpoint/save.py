"""Writes checkpoints that are complete or absent, and removes old ones."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tianji.checkpoint.durable import replace_json, sync_folder, write_file
from tianji.checkpoint.load import list_checkpoints, read_manifest
from tianji.checkpoint.schema import (
    BEST,
    MANIFEST,
    STATE,
    WEIGHTS,
    Manifest,
    Snapshot,
    checkpoints_folder,
    encode_manifest,
    folder_name,
)
from tianji.checkpoint.tensors import Leaf, to_leaf, write_tensors
from tianji.checkpoint.tree import flatten
from tianji.errors import CheckpointError
from tianji.version import VERSION

WRITING, REPLACED, REMOVED = ".writing-", ".replaced-", ".removed-"
LOCK = ".lock"


def write_checkpoint(run_dir: Path, snapshot: Snapshot) -> Path:
    """Write RUN/checkpoints/vNNNNNNNN and return it; the name appears once it is complete."""
    folder = checkpoints_folder(run_dir)
    folder.mkdir(exist_ok=True)  # no parents: a deleted run folder is recreated elsewhere
    content = _encode(snapshot)
    with _only_writer(folder):
        _clear_leftovers(folder)
        return _write(folder, snapshot, content)


@contextlib.contextmanager
def _only_writer(folder: Path) -> Iterator[None]:
    """Wait until no other process or thread writes here.

    Without the lock, its unfinished checkpoint would look like a leftover. The kernel releases the
    lock of a writer that dies.
    """
    with (folder / LOCK).open("w") as lock:  # NFS cannot lock a file that is open only for reading
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _write(folder: Path, snapshot: Snapshot, content: _Content) -> Path:
    _check_space(folder, content.size_bytes)
    writing = folder / f"{WRITING}{folder_name(snapshot.version)}"
    try:
        writing.mkdir()
        files = {
            WEIGHTS: write_tensors(writing / WEIGHTS, content.weights),
            STATE: write_tensors(writing / STATE, content.state),
        }
        manifest = Manifest(
            version=snapshot.version,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            facts=dict(snapshot.facts),
            made_with=_made_with(),
            files=files,
            state=content.tree,
        )
        write_file(writing / MANIFEST, [encode_manifest(manifest)])
        sync_folder(writing)
        return _give_name(writing, folder / folder_name(snapshot.version))
    except BaseException:
        shutil.rmtree(writing, ignore_errors=True)
        raise


class _Content(NamedTuple):
    weights: dict[str, Leaf]
    tree: Any
    state: dict[str, Leaf]

    @property
    def size_bytes(self) -> int:
        leaves = [*self.weights.values(), *self.state.values()]
        return sum(len(leaf.data) for leaf in leaves)


def _encode(snapshot: Snapshot) -> _Content:
    weights = {name: _weight_leaf(name, tensor) for name, tensor in snapshot.weights.items()}
    return _Content(weights, *flatten(snapshot.state))


def needed_bytes(snapshot: Snapshot) -> int:
    """Return the size of its tensors, which is nearly the size on disk."""
    return _encode(snapshot).size_bytes


def _weight_leaf(name: str, tensor: object) -> Leaf:
    leaf = to_leaf(tensor, name)
    if leaf.raw_dtype:
        raise CheckpointError(
            f"Weight '{name}' has type {leaf.raw_dtype}, which safetensors does not support."
        )
    return leaf


def _check_space(folder: Path, needed_bytes: int) -> None:
    # Filling the disk would also stop the metrics.
    if shutil.disk_usage(folder).free < needed_bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))


def _made_with() -> dict[str, str]:
    versions = {"tianji": VERSION, "numpy": np.__version__}
    if "torch" in sys.modules:
        versions["torch"] = str(sys.modules["torch"].__version__)
    return versions


def _give_name(writing: Path, final: Path) -> Path:
    replaced = final.with_name(f"{REPLACED}{final.name}")
    if final.exists():
        shutil.rmtree(replaced, ignore_errors=True)
        final.rename(replaced)
    writing.rename(final)
    sync_folder(final.parent)
    shutil.rmtree(replaced, ignore_errors=True)
    return final


def _clear_leftovers(folder: Path) -> None:
    """Remove the files of a writer that died; the caller holds the lock."""
    for path in sorted(folder.glob(".*-v*")):
        name = path.name.removeprefix(REPLACED)
        if name != path.name and not (folder / name).exists():
            path.rename(folder / name)  # the writer died between the two renames
        else:
            shutil.rmtree(path, ignore_errors=True)


def rotate(run_dir: Path, keep_last: int) -> list[Path]:
    """Mark the best checkpoint; remove all others except the newest `keep_last`."""
    with _only_writer(folder := checkpoints_folder(run_dir)):
        return _rotate(folder, list_checkpoints(run_dir), keep_last)


def _rotate(folder: Path, found: list[Path], keep_last: int) -> list[Path]:
    readable: list[Manifest] = []
    for path in found:
        with contextlib.suppress(CheckpointError):  # damaged or of a newer format: leave it
            readable.append(read_manifest(path))
    keep = {manifest.version for manifest in readable[-keep_last:]}
    rated = [manifest for manifest in readable if manifest.mean_return_100 is not None]
    if rated:
        best = max(rated, key=lambda m: (m.mean_return_100, m.version))
        keep.add(best.version)
        mark = {"checkpoint": folder_name(best.version), "mean_return_100": best.mean_return_100}
        replace_json(folder / BEST, mark)
    gone = [manifest.version for manifest in readable if manifest.version not in keep]
    return [_remove(folder / folder_name(version)) for version in gone]


def _remove(path: Path) -> Path:
    removed = path.with_name(f"{REMOVED}{path.name}")
    path.rename(removed)
    shutil.rmtree(removed, ignore_errors=True)
    return path
