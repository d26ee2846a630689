"""The steps of a replay store in a checkpoint, and their way back.

Rows of all lanes stand one behind the other; final observations stand beside their place. So a
checkpoint fits a store with another capacity, and regroup.py can divide it among other lanes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tianji.buffer.stores.finals import NONE
from tianji.buffer.stores.observations import read_rows, write_rows
from tianji.buffer.stores.ring_layout import BEGIN, END, FINALS, MADE, ORIGIN, STEPS
from tianji.buffer.stores.rings import Rings
from tianji.types import Array


def save_rings(rings: Rings) -> dict[str, Any]:
    """Return copies of all rows that items are made of.

    head:   [L, words] the heads of the lanes
    rows:   [L] rows of each lane: from `history` rows before `begin` up to `end`
    arrays: [sum of rows, N, ...] by name
    final_at: [F, 3] lane, row and environment of each final observation; row 0 is the first saved
    finals: [F, ...] by name
    """
    layout, head = rings.layout, rings.arrays["head"].copy()
    first_L = np.maximum(0, head[:, BEGIN] - layout.history)
    rows_L = np.where(head[:, END] > 0, head[:, END] + 1 - first_L, 0)
    spans = list(enumerate(zip(first_L.tolist(), rows_L.tolist(), strict=True)))
    names = ("version", "used", *STEPS, *(field.name for field in layout.ages))
    arrays = {
        name: np.concatenate([read_rows(rings.arrays[name][lane], *span) for lane, span in spans])
        for name in names
    }
    for name, _, memory in rings.observed:
        arrays[name] = np.concatenate([memory.read(lane, *span) for lane, span in spans])
    saved = {"head": head, "rows": rows_L, "arrays": arrays}
    return {**saved, **_save_finals(rings, spans)} if layout.finals else saved


def _save_finals(rings: Rings, spans: list[tuple[int, tuple[int, int]]]) -> dict[str, Any]:
    arrays, at = rings.arrays, []
    found: dict[str, list[Array]] = {field.name: [] for field in rings.layout.finals}
    for lane, (first, count) in spans:
        begin = int(arrays["head"][lane, BEGIN]) - first
        entry_TN = read_rows(arrays["final"][lane], first, count)[:-1]
        place = np.argwhere(entry_TN != NONE)
        place = place[place[:, 0] >= begin]
        at.append(np.insert(place, 0, lane, axis=1))
        for name, values in found.items():
            values.append(arrays[name][lane][entry_TN[place[:, 0], place[:, 1]]])
    finals = {name: np.concatenate(values) for name, values in found.items()}
    return {"final_at": np.concatenate(at), "finals": finals}


def load_rings(rings: Rings, saved: Mapping[str, Any]) -> None:
    """Fill empty rings with saved rows, the newest where not all fit."""
    heads = [_load_lane(rings, saved, lane) for lane in range(rings.layout.num_lanes)]
    # Only when all are copied, and `end` after `begin`: a process that dies before leaves nothing.
    for lane, head in enumerate(heads):
        for word in (BEGIN, FINALS, END, ORIGIN, MADE):
            rings.arrays["head"][lane, word] = head[word]


def _load_lane(rings: Rings, saved: Mapping[str, Any], lane: int) -> Array:
    """Copy the rows of one lane; return its head."""
    layout, count = rings.layout, int(saved["rows"][lane])
    head: Array = np.array(saved["head"][lane])
    if not count:
        return np.zeros_like(head)
    end = int(head[END])
    head[BEGIN] = max(head[BEGIN], end - rings.num_rows + layout.history + 1)
    first = max(end + 1 - count, int(head[BEGIN]) - layout.history)
    stop = int(np.sum(saved["rows"][: lane + 1]))
    kept = {name: array[stop - (end + 1 - first) : stop] for name, array in saved["arrays"].items()}
    for leaf in rings.observed:
        leaf.memory.write(lane, first, kept.pop(leaf.name))
    for name, rows in kept.items():
        write_rows(rings.arrays[name][lane], first, rows)
    if layout.finals:
        head[BEGIN], head[FINALS] = _load_finals(rings, saved, lane, end + 1 - count, head[BEGIN])
    return head


def _load_finals(
    rings: Rings, saved: Mapping[str, Any], lane: int, offset: int, begin: int
) -> tuple[int, int]:
    """Fill the table of a lane; return where its items begin, and the number of entries.

    offset: the lane's row that was saved first."""
    arrays, at = rings.arrays, saved["final_at"]
    (chosen,) = np.nonzero((at[:, 0] == lane) & (at[:, 1] + offset >= begin))
    chosen = chosen[np.argsort(at[chosen, 1], kind="stable")]
    if len(chosen) > (size := rings.layout.num_finals):
        begin = offset + int(at[chosen[-size - 1], 1]) + 1
        chosen = chosen[at[chosen, 1] + offset >= begin]
    row, env, entry = at[chosen, 1] + offset, at[chosen, 2], np.arange(len(chosen))
    arrays["final"][lane] = NONE
    arrays["final"][lane][row % rings.num_rows, env] = entry
    arrays["final_row"][lane][entry] = row
    for name, values in saved["finals"].items():
        arrays[name][lane][entry] = values[chosen]
    return begin, len(chosen)
