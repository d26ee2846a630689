"""Says how an environment that was named wrongly is named: by its module, or by a name in it."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium as gym

from tianji.importing import import_users
from tianji.wording import listed

MOST_NAMES = 5


def maker_names(module: ModuleType) -> list[str]:
    """Return the names in a module that may make environments: classes of environments, and
    functions of the module or its package."""
    return [name for name, value in vars(module).items() if _may_make(value, module)]


def _may_make(value: Any, module: ModuleType) -> bool:
    if isinstance(value, type):
        return _is_env(value)
    package = str(getattr(value, "__module__", "")).partition(".")[0]
    return callable(value) and package == module.__name__.partition(".")[0]


def _is_env(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, gym.Env) and value is not gym.Env


def is_path(module_name: str) -> bool:
    """Return whether a file was named in place of its module."""
    return os.sep in module_name or module_name.endswith(".py")


def module_at(path: str) -> str:
    """Return the name of the module in a file, as seen from the current folder.

    >>> module_at("./games/chase.py")
    'games.chase'
    """
    parts = Path(os.path.relpath(path)).with_suffix("").parts
    return parts[-1] if os.pardir in parts else ".".join(parts)


def advice_on_module(name: str) -> str:
    """Return how to name an environment of a module in the current folder, where only the module or
    its file was named; "" if there is no such module."""
    file = Path(name if name.endswith(".py") else f"{name}.py")
    if not file.is_file() and not (Path(name) / "__init__.py").is_file():
        return ""
    module_name = module_at(name)
    advice = (
        f"'{name}' is a module: write '{module_name}:NAME', with the name of a class or function "
        "in it that makes an environment."
    )
    found = [f"{module_name}:{one}" for one in _environments_in(module_name)]
    return f"{advice} It has {listed(found, MOST_NAMES)}." if found else advice


def _environments_in(module_name: str) -> list[str]:
    """Return the names of the classes of environments; none if the module cannot be imported."""
    try:
        module = import_users(module_name, to_find="its environments")
    except (Exception, SystemExit):  # noqa: BLE001 - users' code may raise anything
        return []
    return [name for name, value in vars(module).items() if _is_env(value)]
