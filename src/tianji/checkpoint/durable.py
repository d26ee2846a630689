"""Files that are there whole or not at all, also after a crash or a power cut."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

CHUNK_BYTES = 4 << 20
"""Hashing and writing let other threads run; small pieces keep the page cache from bursting."""


class Stored(NamedTuple):
    """What a file must look like to be the one that was written."""

    size_bytes: int
    sha256: str


def write_file(path: Path, pieces: Iterable[bytes | memoryview]) -> Stored:
    """Write the pieces one after another, hash them in passing, and wait for the disk."""
    digest, size_bytes = hashlib.sha256(), 0
    with path.open("xb", buffering=0) as file:
        for piece in pieces:
            view = memoryview(piece)
            for start in range(0, len(view), CHUNK_BYTES):
                chunk = view[start : start + CHUNK_BYTES]
                digest.update(chunk)
                _write_all(file.fileno(), chunk)
            size_bytes += len(view)
        os.fsync(file.fileno())
    return Stored(size_bytes, digest.hexdigest())


def _write_all(descriptor: int, chunk: memoryview) -> None:
    # A nearly full disk takes a part of a write first and refuses the next one.
    while chunk:
        chunk = chunk[os.write(descriptor, chunk) :]


def measure_file(path: Path) -> Stored:
    """Size and hash of a file as it is now."""
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
        return Stored(file.tell(), digest.hexdigest())


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, data: bytes) -> None:
    """Put a small file in the place of the one of that name, in one step."""
    beside = path.with_name(f".{path.name}.writing")
    beside.unlink(missing_ok=True)
    try:
        write_file(beside, [data])
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def to_plain(value: Any) -> Any:
    """The same value as JSON can say it: numpy numbers become numbers, NaN and infinity null."""
    if isinstance(value, Mapping):
        return {str(key): to_plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return to_plain(value.tolist())
    if isinstance(value, list | tuple):
        return [to_plain(entry) for entry in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Path):
        return str(value)
    return value


def replace_json(path: Path, value: Any) -> None:
    """`replace_file` with the value as indented JSON."""
    text = json.dumps(to_plain(value), indent=2, allow_nan=False)
    replace_file(path, f"{text}\n".encode())
