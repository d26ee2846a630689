"""Imports the modules of users, and refuses runs that such a module starts while it is imported.

Every process of a run imports these modules, so a module that trains when it is imported would
start processes that start processes, without end.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import ModuleType

from tianji.errors import UsageError

_DOING: ContextVar[str] = ContextVar("doing", default="")
"""What TianJi is doing with a user's module at the moment, in words; "" if nothing."""


def import_users(module_name: str, to_find: str) -> ModuleType:
    """Import a module; those in the current folder count too, as they do for `python -m`.

    >>> import_users("chase", to_find="an environment")
    """
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.append(os.getcwd())
    with no_runs_while(f"importing '{module_name}' to find {to_find}"):
        return importlib.import_module(module_name)


@contextmanager
def no_runs_while(doing: str) -> Iterator[None]:
    """Let refuse_runs() raise in this block. doing: what TianJi does in it, for the message."""
    token = _DOING.set(doing)
    try:
        yield
    finally:
        _DOING.reset(token)


def refuse_runs(called: str) -> None:
    """Raise UsageError where a user's module is being imported. called: what starts runs."""
    doing = _DOING.get()
    if doing:
        raise UsageError(
            f"{called} was called while TianJi was {doing}. Put what trains under "
            "`if __name__ == '__main__':`."
        )
