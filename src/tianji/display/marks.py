"""Characters that the display draws with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Marks(NamedTuple):
    """Characters to draw with."""

    done: str
    rest: str
    levels: str
    """From nothing to full."""
    dot: str
    more: str
    """Where text was cut."""


UNICODE = Marks("━", "─", " ▁▂▃▄▅▆▇█", "·", " …")
ASCII = Marks("#", "-", " .:-=+*%#", "|", " ...")


def to_columns(counts: Sequence[float], marks: Marks, highest: float | None = None) -> str:
    """A tiny histogram, one character each; what is not zero is never drawn as nothing.

    >>> to_columns([1, 8, 0, 4], UNICODE)
    '▁█ ▄'
    """
    top = highest or max(counts, default=0) or 1
    last = len(marks.levels) - 1
    heights = (min(last, max(round(last * count / top), count > 0)) for count in counts)
    return "".join(marks.levels[height] for height in heights)
