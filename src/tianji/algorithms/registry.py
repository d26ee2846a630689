"""Algorithms by name: ours, and any `module:attribute` of a user's own."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from tianji.algorithms.interface import Algorithm
from tianji.errors import UsageError, did_you_mean
from tianji.importing import import_users
from tianji.wording import kind_of

BUILT_IN = {
    "ppo": "ppo.spec:ALGORITHM",
    "dqn": "dqn.spec:ALGORITHM",
    "apex": "apex.spec:ALGORITHM",
    "sac": "sac.spec:ALGORITHM",
    "impala": "impala.spec:ALGORITHM",
    "a3c": "a3c.spec:ALGORITHM",
    "gorila": "gorila.spec:ALGORITHM",
    "rennala-nigt": "policy_gradient.spec:RENNALA_NIGT",
    "malenia-nigt": "policy_gradient.spec:MALENIA_NIGT",
    "sync-nigt": "policy_gradient.spec:SYNC_NIGT",
    "afedpg": "policy_gradient.spec:AFEDPG",
    "rennala-pg": "policy_gradient.spec:RENNALA_PG",
}
"""The place of each record, below this folder."""


def load_algorithm(name: str) -> Algorithm:
    """Return the record for a name; import a `module:attribute`."""
    if name not in BUILT_IN and ":" not in name:
        raise UsageError(
            f"Unknown algorithm '{name}'. Known: {', '.join(BUILT_IN)}, or 'module:attribute' of "
            f"an Algorithm record of your own.{did_you_mean(name, BUILT_IN)}"
        )
    module_name, _, attribute = BUILT_IN.get(name, name).partition(":")
    try:
        if name in BUILT_IN:
            module = importlib.import_module(f"tianji.algorithms.{module_name}")
        else:
            module = import_users(module_name, to_find="an algorithm")
        found = getattr(module, attribute)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"Cannot load algorithm '{name}': {error}") from error
    if not isinstance(found, Algorithm):
        raise UsageError(f"'{name}' is {kind_of(found)}, not an Algorithm record.")
    return found


def later(module: str, function: str) -> Callable[..., Any]:
    """Return a function, or a class, whose module below tianji.algorithms is imported when it is
    called: records must not import torch.

    >>> build_model = later("actor_critic.model", "build_model")
    """

    def call(*args: Any) -> Any:
        return getattr(importlib.import_module(f"tianji.algorithms.{module}"), function)(*args)

    return call
