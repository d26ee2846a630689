"""Finds callbacks by name: ours, and any `module:name` of a class or an instance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias, cast

from tianji.errors import TianjiError, UsageError, did_you_mean
from tianji.importing import import_users
from tianji.observe.callbacks.interface import METHODS, Callback, RunCallback
from tianji.raised import error_in_words
from tianji.wording import kind_of

BUILT_IN = {"wandb": "wandb:WandbTracker", "mlflow": "mlflow:MlflowTracker"}
"""The place of each tracker, below this folder."""

GivenCallback: TypeAlias = RunCallback | type[RunCallback]


class NamedCallback(NamedTuple):
    """A callback, and the name that people know it by."""

    name: str
    callback: RunCallback


def load_callbacks(
    names: Sequence[str], given: Sequence[GivenCallback] = ()
) -> list[NamedCallback]:
    """Return the callbacks of these names and those that were given as objects or classes.

    UsageError if one cannot be loaded, or lacks what it needs.
    """
    found = [NamedCallback(name, _checked(_find(name), name)) for name in names]
    for one in given:
        kind = one if isinstance(one, type) else type(one)
        found.append(NamedCallback(kind.__qualname__, _checked(one, kind.__qualname__)))
    return found


def _find(name: str) -> Any:
    if name not in BUILT_IN and ":" not in name:
        raise UsageError(
            f"Unknown callback '{name}'.{did_you_mean(name, BUILT_IN)} Known: "
            f"{', '.join(BUILT_IN)}, or 'module:name' of a class or an object of your own."
        )
    place = f"tianji.observe.callbacks.{BUILT_IN[name]}" if name in BUILT_IN else name
    module_name, _, attribute = place.partition(":")
    try:
        return getattr(import_users(module_name, to_find="a callback"), attribute)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"Cannot load callback '{name}': {error}.") from error


def _checked(found: Any, name: str) -> RunCallback:
    """Return the object; a class is called without arguments."""
    if not any(callable(getattr(found, method, None)) for method in METHODS):
        raise UsageError(
            f"Callback '{name}' is {kind_of(found)} without any of the methods "
            f"{', '.join(METHODS)}. Give a class or an object that has one; tianji.Callback is a "
            "base class with all of them."
        )
    _check_hooks(found, name)
    if not isinstance(found, type):
        return cast("RunCallback", found)
    try:
        return cast("RunCallback", found())
    except TianjiError:
        raise
    except Exception as error:
        raise UsageError(
            f"Callback '{name}' cannot be made without arguments: {error_in_words(error)}. "
            "Name an object instead of the class, or pass it to tianji.train(callbacks=[...])."
        ) from error


def _check_hooks(found: Any, name: str) -> None:
    """Refuse a tianji.Callback with a hook that no run calls, or with none of its own: the hook may
    be misspelt."""
    kind = found if isinstance(found, type) else type(found)
    if not issubclass(kind, Callback):
        return
    unknown = [hook for hook in dir(kind) if hook.startswith("on_") and hook not in METHODS]
    if unknown:
        raise UsageError(
            f"Callback '{name}' has the method {unknown[0]}, which no run calls."
            f"{did_you_mean(unknown[0], METHODS)} Runs call {', '.join(METHODS)}. Rename it; a "
            "method of your own must not begin with on_."
        )
    if all(_is_inherited(found, hook) for hook in METHODS):
        raise UsageError(
            f"Callback '{name}' overrides none of the methods that a run calls: "
            f"{', '.join(METHODS)}. Override one, or leave the callback out."
        )


def _is_inherited(found: Any, hook: str) -> bool:
    """Return whether this is the hook of tianji.Callback, which does nothing."""
    method = getattr(found, hook)
    return getattr(method, "__func__", method) is getattr(Callback, hook)
