"""Functions whose modules are imported when they are called: records must not import torch."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def later(module: str, function: str) -> Callable[..., Any]:
    """Return a function that imports its module, below tianji.algorithms, at its first call.

    >>> build_model = later("actor_critic.model", "build_model")
    """

    def call(*args: Any) -> Any:
        return getattr(importlib.import_module(f"tianji.algorithms.{module}"), function)(*args)

    return call
