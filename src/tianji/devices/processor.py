"""What the system says of this machine's processor."""

from __future__ import annotations

import functools
import platform
from pathlib import Path

FACTS = Path("/proc/cpuinfo")
INTEL = "GenuineIntel"


def processor() -> str:
    """Return the name of the processor."""
    return _told("model name") or platform.processor()


@functools.cache
def vendor() -> str:
    """Return who made the processor, such as GenuineIntel; empty where the system does not say."""
    return _told("vendor_id")


def _told(name: str) -> str:
    try:
        lines = FACTS.read_text().splitlines()
    except OSError:
        lines = []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(name)), "")
