"""Checkpoints that cross between hosts without a common disk: one folder as one string of bytes.

data = pack(folder)                   # names and sizes as JSON, then the contents
unpack(data, parent / folder.name)    # there, or complete after the rename
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from pathlib import Path

from tianji.checkpoint.durable import sync_folder, write_file
from tianji.errors import CheckpointError

MARK_FILE = ".head"
_LENGTH_BYTES = 8


def mark(run_dir: Path) -> str:
    """Write a file by which an agent knows the run folder of its head; return its content."""
    text = secrets.token_hex(16)
    (run_dir / MARK_FILE).write_text(text)
    return text


def sees(run_dir: Path, text: str) -> bool:
    """Return whether this host has the head's run folder at the same path."""
    try:
        return (run_dir / MARK_FILE).read_text() == text
    except OSError:
        return False


def pack(folder: Path) -> bytes:
    """Return the files of a folder, which has no folders in it."""
    files = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    head = json.dumps({name: len(data) for name, data in files.items()}).encode()
    return b"".join([len(head).to_bytes(_LENGTH_BYTES, "little"), head, *files.values()])


def unpack(data: bytes, folder: Path) -> None:
    """Write a packed folder; it appears complete or not at all."""
    if folder.exists():
        return
    begin = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "little")
    sizes: dict[str, int] = json.loads(data[_LENGTH_BYTES:begin])
    if any(name in ("", ".", "..") or "/" in name for name in sizes):
        raise CheckpointError(f"A checkpoint from another host names files outside: {list(sizes)}.")
    if begin + sum(sizes.values()) != len(data):
        raise CheckpointError("A checkpoint from another host is cut off.")
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    for name, size in sizes.items():
        write_file(part / name, [memoryview(data)[begin : begin + size]])
        begin += size
    sync_folder(part)
    os.rename(part, folder)
    sync_folder(folder.parent)
