"""Keeps passwords and keys out of what is written about a run."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

HIDDEN = "***"
_SECRET_NAMES = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_IN_URL = re.compile(r"(?<=://)[^/\s@]+@")
_SHORTEST = 6
"""Shorter values are no secrets, and would hide ordinary words."""


def without_secrets(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return the text without the values of environment variables whose names say that they are
    secret, and without users and passwords in addresses.

    >>> without_secrets("https://me:pass@host failed")
    'https://***@host failed'
    """
    for name, value in environment.items():
        if _SECRET_NAMES.search(name) and len(value) >= _SHORTEST:
            text = text.replace(value, HIDDEN)
    return _IN_URL.sub(f"{HIDDEN}@", text)
