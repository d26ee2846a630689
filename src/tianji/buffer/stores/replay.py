"""The replay store: transitions are sampled from the newest steps, until newer ones push them out.

It copies unrolls into memory of its own (rings.py), so that their slots are free again at once. A
learner that takes over continues with what lies there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tianji.buffer.interface import Store
from tianji.buffer.stores.age import AgeGauge
from tianji.buffer.stores.rings import Items, Rings
from tianji.buffer.stores.sampling import Sampler
from tianji.buffer.stores.saved_rings import load_rings, save_rings
from tianji.channels.interface import Receiver
from tianji.types import Array, Batch, Stamp

_ROUNDING = 1e-6  # of an item: ratios are seldom exact in binary


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """ReplayPlan(unroll_length=4, ratio=16.0, warmup_unrolls=32, minibatch=128, gamma=0.99, seed=1,
    saves_items=True, updates_per_batch=8)"""

    unroll_length: int
    ratio: float
    """Items taken per step put."""
    warmup_unrolls: int
    minibatch: int
    gamma: float
    seed: int
    saves_items: bool
    """Checkpoints hold the items too."""
    updates_per_batch: int
    """Minibatches of a batch; at most so many if there is a ratio to keep."""
    keeps_ratio: bool = True
    """A batch has no more minibatches than the ratio makes of what was put."""
    saves_last: bool = False
    """The last checkpoint does, when the run is stopped."""
    n_step: int | None = None
    """Rewards of a return; None: as many as the layout looks ahead."""


class Replay(Store):
    """Keeps the newest steps of every lane. A batch is as many whole minibatches of transitions as
    the ratio makes of what was put, up to those of a version; the rest is carried over. Unrolls
    with fewer items (environments being reset, unrolls handed over early) therefore lead to fewer
    updates, not to a higher ratio, and unrolls that are stored ahead do not make a batch larger.
    Without a ratio to keep, all batches are of the same size."""

    def __init__(
        self, plan: ReplayPlan, receiver: Receiver, rings: Rings, sampler: Sampler
    ) -> None:
        self._plan = plan
        self._receiver = receiver
        self._rings = rings
        self._sampler = sampler
        self._owed = 0.0
        """Items that may be taken for what was put after the warm-up, less those taken."""
        self._rng = np.random.default_rng(plan.seed)
        self._age = AgeGauge()
        self._used = rings.arrays["used"].reshape(-1)
        self._versions = rings.arrays["version"].reshape(-1)
        self._warmup_left = plan.warmup_unrolls
        self._end_warmup()

    def _end_warmup(self) -> None:
        """Skip the part of the warm-up that the steps in the store make up for."""
        self._warmup_left = max(0, self._warmup_left - self.num_held())

    def put(self, slot: int, stamp: Stamp) -> int:
        added = self._rings.put(self._receiver.arrays, slot, stamp.actor, stamp.oldest_version)
        self._receiver.release(slot)
        self._sampler.added(added)
        if self._warmup_left > 0:
            self._warmup_left -= 1
            return 0
        self._owed += self._plan.ratio * stamp.env_steps
        return stamp.env_steps

    def take(self, version: int) -> Batch:
        minibatch = self._plan.minibatch
        num_updates = self._num_updates()
        count = num_updates * minibatch
        self._owed -= count
        items, weight_B, largest_U = self._sampler.draw(self._rng, count, minibatch)
        fresh = self._note_use(items, version)
        gathered = self._rings.gather(items, self._plan.gamma, self._plan.n_step)
        if weight_B is not None:
            gathered["weight"] = weight_B
        shaped = {
            name: array.reshape(num_updates, minibatch, *array.shape[1:])
            for name, array in gathered.items()
        }
        if largest_U is not None:
            shaped["largest_weight"] = largest_U
        return Batch(shaped, (), count, num_steps=count, unique_steps=fresh, keys=self._keys(items))

    def _num_updates(self) -> int:
        """Return how many minibatches the next batch has; at least one."""
        most = self._plan.updates_per_batch
        if not self._plan.keeps_ratio:
            return most
        return min(most, max(1, int((self._owed + _ROUNDING) // self._plan.minibatch)))

    def _keys(self, items: Items) -> Array:
        """Return numbers that no other items ever have, of this store."""
        num_lanes, num_envs = self._rings.layout.num_lanes, self._rings.num_envs
        keys: Array = (items.row_B * num_lanes + items.lane_B) * num_envs + items.env_B
        return keys

    def _items(self, keys: Array) -> Items:
        rest, env_B = np.divmod(keys, self._rings.num_envs)
        row_B, lane_B = np.divmod(rest, self._rings.layout.num_lanes)
        return Items(lane_B, row_B, env_B)

    def _note_use(self, items: Items, version: int) -> int:
        """Return how many of them are used for the first time."""
        place_B = self._rings.place(items)
        fresh = np.unique(place_B[~self._used.take(place_B)])
        self._used[fresh] = True
        versions_B = self._versions.take(place_B // self._rings.num_envs)
        self._age.add(version * len(place_B) - int(versions_B.sum()), len(place_B))
        return len(fresh)

    def finish(self, batch: Batch, priorities: Array | None = None) -> None:
        """Give the items of a batch their new priorities."""
        if priorities is not None:
            assert batch.keys is not None, "batches of this store have keys"
            self._sampler.learned(self._items(batch.keys), priorities)

    def metrics(self) -> dict[str, float]:
        """Return the mean age of the items used, in versions, and the share of the store in use."""
        layout = self._rings.layout
        fill = sum(self._rings.counts()) / (layout.num_lanes * layout.capacity)
        return {"age_versions": self._age.read(), "fill": fill}

    def num_held(self) -> int:
        return sum(self._rings.counts()) // self._plan.unroll_length

    def state(self, is_last: bool = False) -> dict[str, Any]:
        state = {
            "rng": self._rng.bit_generator.state,
            "owed": self._owed,
            "num_held": self.num_held(),
        }
        if self._plan.saves_items or (is_last and self._plan.saves_last):
            state["items"] = save_rings(self._rings)
            state["sampler"] = self._sampler.state()
        return state

    def load_state(self, state: dict[str, Any]) -> None:
        self._rng.bit_generator.state = state["rng"]
        self._owed = float(state.get("owed", 0.0))  # none in checkpoints of version 0.1
        if "sampler" not in state or self.num_held():
            return  # the items in memory are newer
        load_rings(self._rings, state["items"])
        self._sampler.load_state(state["sampler"])
        self._end_warmup()
