"""What an explanation is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

CriticalPath: TypeAlias = Literal["actors", "learner", "buffer", "both", "neither"]

LIMIT = 0.85
"""Whoever works this share of the time sets the pace; the rest is hand-over and noise."""
NOTHING_YET = "Nothing to explain yet: no work has been seen."


@dataclass(frozen=True, slots=True)
class Explanation:
    """Explanation("learner", sentences=("The learner is ...", ...), gain="What gains most: ...")"""

    critical_path: CriticalPath | None
    """The role that sets the pace; `both` work all the time, `neither` does always."""
    sentences: tuple[str, ...]
    """The first names the critical path."""
    gain: str = ""
    """Which of the sentences says what change gains most."""
