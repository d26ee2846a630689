"""Finds the tests of a room."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.code_lines import TOP

SHARED = ("contracts", "numerics")


def find_tests(room: str, root: Path) -> list[str]:
    """Return `tests/unit/ROOM`, and the contracts and numerics that are about this room."""
    unit = root / "tests" / "unit"
    if room == TOP:
        found = sorted(unit.glob("test_*.py"))
    else:
        found = [unit / room] if (unit / room).is_dir() else []
        for folder in SHARED:
            files = sorted((root / "tests" / folder).glob("test_*.py"))
            found += [file for file in files if is_about(file.stem, file.read_text(), room)]
    return [str(path.relative_to(root)) for path in found]


def is_about(stem: str, source: str, room: str) -> bool:
    """A test file is about a room if it imports the room or is named after it.

    `test_algorithm.py` is about `algorithms`, although it loads them by name.
    """
    is_named = stem.removeprefix("test_") in (room, room.removesuffix("s"))
    imports = rf"^\s*(from|import) tianji\.{re.escape(room)}\b"
    return is_named or re.search(imports, source, re.MULTILINE) is not None
