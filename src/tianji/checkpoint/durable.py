"""Writes files that are complete or absent, also after a crash or a power cut."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

CHUNK_BYTES = 4 << 20
"""Size of one write. Other threads can run between two of them."""


@dataclass(frozen=True, slots=True)
class Stored:
    """Size and hash of a file: Stored(size_bytes=81920, sha256="9f86d0...")."""

    size_bytes: int
    sha256: str


def write_file(path: Path, pieces: Iterable[bytes | memoryview]) -> Stored:
    """Write and hash the pieces one after another, and wait for the disk."""
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
    # On a nearly full disk, write() may write only a part.
    while chunk:
        chunk = chunk[os.write(descriptor, chunk) :]


def measure_file(path: Path) -> Stored:
    """Return the size and hash of a file."""
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
        return Stored(file.tell(), digest.hexdigest())


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, so that they survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, data: bytes) -> None:
    """Write a small file and replace the one of that name in one step."""
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
    """Return a value for JSON: NumPy numbers become numbers, NaN and infinity become null."""
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
    """Write a value as indented JSON with replace_file()."""
    text = json.dumps(to_plain(value), indent=2, allow_nan=False)
    replace_file(path, f"{text}\n".encode())
