"""Converts the saved state of a buffer to another number of actors. Pure.

Environments are independent of each other, so a stored unroll is a set of columns, one per
environment, and columns may be combined in another way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tianji.types import Array


def regrouped(
    state: Mapping[str, Any],
    num_actors: int,
    envs_per_actor: int,
    env_axes: Mapping[str, int | None],
    capacity: int,
) -> dict[str, Any]:
    """Return the state as the buffer of `num_actors` would have saved it.

    env_axes: where each field of an unroll has its environments (Layout.env_axes).
    capacity: unrolls that the store keeps now; the newest stay.
    """
    rounds = list(state["rounds"])
    if len(rounds) == num_actors:
        return dict(state)
    store = dict(state["store"])
    if "items" in store:
        store = _regrouped_store(store, envs_per_actor, env_axes, capacity)
    # A round of all actors has the same steps for any number of them; the highest repeats none.
    return {**state, "rounds": [max(rounds)] * num_actors, "store": store}


def _regrouped_store(
    store: dict[str, Any], envs: int, env_axes: Mapping[str, int | None], capacity: int
) -> dict[str, Any]:
    num_held, _, envs_before = store["items"]["reward"].shape
    columns = num_held * envs_before
    count = min(capacity, columns // envs)
    kept = slice(
        columns - count * envs, columns
    )  # leaves out the oldest: they fill no unroll, or exceed the capacity
    first_of_each = np.arange(kept.start, kept.stop, envs) // envs_before

    def regroup(array: Array, axis: int | None) -> Array:
        if axis is None:  # one value for all environments: take the oldest column's
            chosen: Array = array[first_of_each]
            return chosen
        by_column = np.moveaxis(array, axis + 1, 1).reshape(columns, *_without(array, axis))
        grouped = by_column[kept].reshape(count, envs, *_without(array, axis))
        return np.ascontiguousarray(np.moveaxis(grouped, 1, axis + 1))

    version_of_column = np.repeat(store["oldest_version"], envs_before)
    num_rows = store["used"].shape[1] // envs_before
    used = store["used"].reshape(num_held, num_rows, envs_before)
    return {
        **store,
        "items": {name: regroup(array, env_axes[name]) for name, array in store["items"].items()},
        "oldest_version": version_of_column[kept].reshape(count, envs).min(axis=1),
        "used": regroup(used, axis=1).reshape(count, num_rows * envs),
    }


def _without(array: Array, axis: int) -> tuple[int, ...]:
    """Return the shape of one column: an unroll without its environment axis."""
    shape = array.shape[1:]
    return shape[:axis] + shape[axis + 1 :]
