"""Final observations of a replay store, where the world keeps them apart from the others.

Few steps end an episode, so final observations lie in a table of their own, and each step has the
index of its entry. Steps are given up in the order in which they came, so the table is a ring too.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tianji.buffer.stores.ring_layout import RingLayout
from tianji.types import Array

NONE = -1
"""The entry of steps without a final observation."""


class FinalObservations:
    """One table for each lane. Entries are counted from the first: entry e lies at e % F."""

    def __init__(self, layout: RingLayout, arrays: Mapping[str, Array]) -> None:
        self._size = layout.num_finals
        self._num_rows = layout.num_rows
        self._names = [field.name for field in layout.finals]
        self._arrays = arrays

    def find(self, arrays: Mapping[str, Array], slot: int, first: int, last: int) -> Array:
        """Return the (row, environment) of the steps of an unroll that end an episode."""
        rows = slice(first, last)
        ended = arrays["terminated"][slot, rows] | arrays["truncated"][slot, rows]
        place: Array = np.argwhere(ended) + np.array([first, 0])
        return place

    def begin_after(self, lane: int, num_entries: int, num_new: int) -> int:
        """Return the first row that keeps its entries when so many new ones are written."""
        if not num_new or num_entries + num_new <= self._size:
            return 0
        overwritten = (num_entries + num_new - 1) % self._size
        return int(self._arrays["final_row"][lane, overwritten]) + 1

    def copy(
        self,
        arrays: Mapping[str, Array],
        slot: int,
        lane: int,
        offset: int,
        ended: Array,
        num_entries: int,
    ) -> None:
        """Store the final observations of these steps. offset: the lane's row for row 0."""
        if not len(ended):
            return
        row, env = ended[:, 0], ended[:, 1]
        entry = np.arange(num_entries, num_entries + len(ended)) % self._size
        for name in self._names:
            self._arrays[name][lane][entry] = arrays[name][slot][row, env]
        self._arrays["final_row"][lane][entry] = offset + row
        self._arrays["final"][lane][(offset + row) % self._num_rows, env] = entry
