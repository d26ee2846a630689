"""Prioritised sampling: items are drawn in proportion to their priorities.

T: rows, N: environments of a lane, B: items of a batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tianji.algorithms.interface import Proportional
from tianji.buffer.stores.rings import Added, Items, Rings
from tianji.buffer.stores.sampling import Sample
from tianji.ops.sum_tree import SumTree
from tianji.types import Array


class ProportionalSampler:
    """Draws item i with probability p_i^alpha / sum p^alpha (Schaul et al. 2016, equation 1). A new
    item has the highest priority so far, unless its actor has computed one."""

    def __init__(self, rings: Rings, settings: Proportional) -> None:
        self._rings = rings
        self._settings = settings
        num_lanes, num_rows, num_envs = rings.arrays["valid"].shape
        self._valid = rings.arrays["valid"].reshape(-1)
        self._tree = SumTree(num_lanes * num_rows * num_envs)
        self._highest = 1.0
        """The highest priority so far, to the power of alpha."""
        self._begin_with_rings()

    def _begin_with_rings(self) -> None:
        """Give all items of a former process the same priority."""
        pairs = zip(self._rings.begins(), self._rings.counts(), strict=True)
        for lane, (begin, count) in enumerate(pairs):
            self.added(Added(lane, range(0), range(begin, begin + count), None))

    def added(self, added: Added) -> None:
        gone_T, begun_T = (
            self._places(added.lane, added.given_up),
            self._places(added.lane, added.begun),
        )
        value_TN = np.full((len(added.begun), self._rings.num_envs), self._highest)
        if added.priority_TN is not None:
            known_TN = self._powered(added.priority_TN[-len(value_TN) :])
            value_TN[len(value_TN) - len(known_TN) :] = known_TN
        value_T = value_TN.reshape(-1) * self._valid.take(begun_T)
        self._tree.set(
            np.concatenate([gone_T, begun_T]), np.concatenate([np.zeros(len(gone_T)), value_T])
        )

    def _places(self, lane: int, rows: range) -> Array:
        row_T, env_N = np.arange(rows.start, rows.stop)[:, None], np.arange(self._rings.num_envs)
        return self._rings.place(Items(np.array(lane), row_T, env_N)).reshape(-1)

    def _powered(self, priority_B: Array) -> Array:
        settings = self._settings
        powered_B: Array = (np.abs(priority_B) + settings.epsilon) ** settings.alpha
        self._highest = max(self._highest, float(powered_B.max(initial=0.0)))
        return powered_B

    def draw(self, rng: np.random.Generator, count: int, minibatch: int) -> Sample:
        """Draw one item from each of `minibatch` equal parts of the total, for each minibatch."""
        part_B = np.arange(count) % minibatch
        place_B = self._tree.draw((part_B + rng.random(count)) / minibatch)
        return Sample(self._items(place_B), *self._weights(place_B, minibatch))

    def _items(self, place_B: Array) -> Items:
        num_rows, num_envs = self._rings.shape
        step_B, env_B = np.divmod(place_B, num_envs)
        lane_B, at_B = np.divmod(step_B, num_rows)
        begin_B = np.array(self._rings.begins()).take(lane_B)
        return Items(lane_B, begin_B + (at_B - begin_B) % num_rows, env_B)

    def _weights(self, place_B: Array, minibatch: int) -> tuple[Array, Array]:
        """Return (1 / P_i)^beta over its largest value in the minibatch, and those values."""
        priority_UB = self._tree.get(place_B).reshape(-1, minibatch)
        least_U1 = priority_UB.min(1, keepdims=True)
        weight_UB: Array = (least_U1 / priority_UB) ** self._settings.beta
        largest_U: Array = (self._tree.total / least_U1[:, 0]) ** self._settings.beta
        return weight_UB.reshape(-1).astype(np.float32), largest_U

    def learned(self, items: Items, priority_B: Array) -> None:
        begin_B = np.array(self._rings.begins()).take(items.lane_B)
        kept_B = items.row_B >= begin_B
        kept = Items(*(each[kept_B] for each in items))
        self._tree.set(self._rings.place(kept), self._powered(np.asarray(priority_B)[kept_B]))

    def state(self) -> dict[str, Any]:
        return {
            "highest": self._highest,
            "priorities": [
                self._tree.get(self._places(lane, range(begin, begin + count)))
                for lane, (begin, count) in enumerate(
                    zip(self._rings.begins(), self._rings.counts(), strict=True)
                )
            ],
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue with these priorities, where the rings hold the same items."""
        self._highest = float(state.get("highest", self._highest))
        self._begin_with_rings()
        pairs = zip(self._rings.begins(), self._rings.counts(), strict=True)
        for lane, (begin, count) in enumerate(pairs):
            places = self._places(lane, range(begin, begin + count))
            saved = state.get("priorities", ())
            if lane < len(saved) and len(saved[lane]) == len(places):
                self._tree.set(places, saved[lane])
