"""What an explanation is."""

from __future__ import annotations

from dataclasses import dataclass

from tianji.records import CriticalPath

LIMIT = 0.85
"""A side that works this share of the time sets the pace; the rest is hand-over and noise."""
NOTHING_YET = "There is nothing to explain yet: no role has done any work."


@dataclass(frozen=True, slots=True)
class Explanation:
    """Explanation("learner", sentences=("The learner is ...", ...), gain="Halving ...")"""

    critical_path: CriticalPath | None
    """None where no role has worked yet."""
    sentences: tuple[str, ...]
    """The first names the bottleneck."""
    gain: str = ""
    """The sentence that says which change would help most."""
