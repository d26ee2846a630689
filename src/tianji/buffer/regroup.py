"""Converts the saved state of a buffer to another number of actors. Pure.

Environments are independent of each other, so a replay store's lane is a set of columns, one per
environment, and columns may be combined in another way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tianji.buffer.stores.ring_layout import BEGIN, END, MADE, UNKNOWN
from tianji.types import Array


def regrouped(state: Mapping[str, Any], num_actors: int, envs_per_actor: int) -> dict[str, Any]:
    """Return the state as the buffer of `num_actors` would have saved it."""
    rounds = list(state["rounds"])
    if len(rounds) == num_actors:
        return dict(state)
    store = dict(state["store"])
    if store.pop("sampler", None) is not None:
        items = _regrouped_rings(store["items"], num_actors, envs_per_actor)
        store = {**store, "items": items, "sampler": {}}
    # A round of all actors has the same steps for any number of them; the highest repeats none.
    return {**state, "rounds": [max(rounds)] * num_actors, "store": store}


def _regrouped_rings(saved: Mapping[str, Any], num_lanes: int, envs: int) -> dict[str, Any]:
    """Return saved rings (stores/saved_rings.py) for other lanes. Columns that meet in a lane end
    together; rows that a column does not have are not valid."""
    envs_before = saved["arrays"]["valid"].shape[1]
    lane_C = np.repeat(np.arange(len(saved["rows"])), envs_before)  # C: columns
    env_C = np.tile(np.arange(envs_before), len(saved["rows"]))
    groups = [slice(lane * envs, (lane + 1) * envs) for lane in range(num_lanes)]
    rows_C = saved["rows"][lane_C]
    rows_L = np.array([rows_C[group].max() for group in groups])
    held_C = (saved["head"][:, END] - saved["head"][:, BEGIN])[lane_C]
    heads = np.zeros((num_lanes, saved["head"].shape[1]), np.int64)
    heads[:, END] = np.maximum(0, rows_L - 1)
    heads[:, BEGIN] = heads[:, END] - [held_C[group].max() for group in groups]
    heads[:, MADE] = UNKNOWN
    stop_C = np.cumsum(saved["rows"])[lane_C]

    def regroup(array: Array) -> Array:
        if array.ndim == 1:  # one value for all environments: take the longest column's
            longest = (range(group.start, group.stop)[rows_C[group].argmax()] for group in groups)
            return np.concatenate([array[stop_C[c] - rows_C[c] : stop_C[c]] for c in longest])
        lanes = []
        for group, num_rows in zip(groups, rows_L.tolist(), strict=True):
            lane = np.zeros((num_rows, envs, *array.shape[2:]), array.dtype)
            for env, c in enumerate(range(group.start, group.stop)):
                column = array[stop_C[c] - rows_C[c] : stop_C[c], env_C[c]]
                lane[num_rows - rows_C[c] :, env] = column
            lanes.append(lane)
        return np.concatenate(lanes)

    arrays = {name: regroup(array) for name, array in saved["arrays"].items()}
    for c, (lane, env) in enumerate(np.ndindex(num_lanes, envs)):
        end = int(rows_L[: lane + 1].sum())
        arrays["valid"][end - rows_L[lane] : max(0, end - 1 - held_C[c]), env] = False
    found = {"head": heads, "rows": rows_L, "arrays": arrays}
    if "finals" not in saved:
        return found
    lane_F, row_F, env_F = saved["final_at"].T
    to_lane_F, to_env_F = np.divmod(lane_F * envs_before + env_F, envs)
    to_row_F = row_F + rows_L[to_lane_F] - saved["rows"][lane_F]
    at = np.stack([to_lane_F, to_row_F, to_env_F], axis=1)
    return {**found, "final_at": at, "finals": saved["finals"]}
