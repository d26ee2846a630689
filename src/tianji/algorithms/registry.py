"""Algorithms by name: ours, and any `module:attribute` of a user's own."""

from __future__ import annotations

import difflib
import importlib

from tianji.algorithms.interface import Algorithm
from tianji.errors import UsageError

BUILT_IN = (
    "ppo",
    "dqn",
    "impala",
    "rennala-nigt",
    "malenia-nigt",
    "sync-nigt",
    "afedpg",
    "rennala-pg",
)


def load_algorithm(name: str) -> Algorithm:
    """Return the record for a name; import a `module:attribute`."""
    if ":" in name:
        module_name, _, attribute = name.partition(":")
    elif name in BUILT_IN:
        folder = name.replace("-", "_")
        module_name, attribute = f"tianji.algorithms.{folder}.spec", "ALGORITHM"
    else:
        close = difflib.get_close_matches(name, BUILT_IN, n=1)
        hint = f" Did you mean '{close[0]}'?" if close else ""
        raise UsageError(
            f"Unknown algorithm '{name}'. Known: {', '.join(BUILT_IN)}, or 'module:attribute' of "
            f"an Algorithm record of your own.{hint}"
        )
    try:
        found = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"Cannot load algorithm '{name}': {error}") from error
    if not isinstance(found, Algorithm):
        raise UsageError(f"'{name}' is a {type(found).__name__}, not an Algorithm record.")
    return found
