"""The replay store: transitions are sampled uniformly, in place, until their unroll is pushed out.

An unroll keeps its slot for as long as it lives. Each frame is stored once: the next observation of
a transition is the following row (or the kept final observation), found by index when sampled.
The channel's memory lists the slots that are held, so a learner that takes over finds them.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from tianji.buffer.stores.age import AgeGauge
from tianji.channels.interface import Receiver
from tianji.ops.returns import n_step_return
from tianji.types import FINAL_OBS, OBS, Array, Batch, Stamp, observation_names

_ROUNDING = 1e-6  # of an item: ratios are seldom exact in binary


class Replay:
    """Keeps the newest `capacity` unrolls. A batch is as many whole minibatches of transitions as
    the ratio makes of what was put since the last one; the remainder is carried over. Unrolls with
    fewer items (environments being reset, unrolls handed over early) therefore lead to fewer
    updates, not to a higher ratio."""

    def __init__(
        self,
        receiver: Receiver,
        capacity: int,
        unroll_length: int,
        lookahead: int,
        ratio: float,
        warmup_unrolls: int,
        minibatch: int,
        gamma: float,
        seed: int,
        save_items: bool,
    ) -> None:
        self._receiver = receiver
        self._capacity = capacity
        self._unroll_length = unroll_length
        self._lookahead = lookahead
        self._ratio = ratio
        self._warmup_left = warmup_unrolls
        self._owed = 0.0
        """Items that may be taken for what was put after the warm-up, less those taken."""
        self._minibatch = minibatch
        self._gamma = gamma
        self._save_items = save_items
        self._rng = np.random.default_rng(seed)
        self._held: deque[int] = deque()
        num_slots, _, self._num_envs = receiver.arrays["reward"].shape
        self._oldest_version = np.zeros(num_slots, np.int64)
        self._used = np.zeros((num_slots, unroll_length * self._num_envs), np.bool_)
        self._age = AgeGauge()
        self._take_over()

    def _take_over(self) -> None:
        """Hold the unrolls that the store of a dead learner held."""
        for slot in self._receiver.kept:
            self._held.append(slot)
            self._oldest_version[slot] = self._receiver.stamp(slot).oldest_version
            self._used[slot] = True  # unknown, but no step may count as unique twice
        self._end_warmup()

    def _end_warmup(self) -> None:
        """Skip the part of the warm-up that the unrolls in the store make up for."""
        self._warmup_left = max(0, self._warmup_left - len(self._held))

    def put(self, slot: int, stamp: Stamp) -> int:
        if len(self._held) == self._capacity:
            self._receiver.drop(self._held.popleft())
        self._receiver.keep(slot, stamp)
        self._held.append(slot)
        self._oldest_version[slot] = stamp.oldest_version
        self._used[slot] = False
        if self._warmup_left > 0:
            self._warmup_left -= 1
            return 0
        self._owed += self._ratio * stamp.env_steps
        return stamp.env_steps

    def take(self, version: int) -> Batch:
        num_updates = max(1, int((self._owed + _ROUNDING) // self._minibatch))
        count = num_updates * self._minibatch
        self._owed -= count
        slots, rows, envs = self._sample(count)
        keys = slots * self._used.shape[1] + rows * self._num_envs + envs
        fresh = self._note_use(slots, keys, version)
        shaped = {
            name: array.reshape(num_updates, self._minibatch, *array.shape[1:])
            for name, array in self._gather(slots, rows, envs).items()
        }
        return Batch(shaped, (), count, num_steps=count, unique_steps=fresh, keys=keys)

    def _sample(self, count: int) -> tuple[Array, Array, Array]:
        """Sample uniformly from the valid transitions: draw from all rows, and again for resets."""
        held = np.fromiter(self._held, np.int64, len(self._held))
        valid = self._receiver.arrays["valid"]
        per_slot = self._unroll_length * self._num_envs
        found = np.empty(0, np.int64)
        while len(found) < count:
            drawn = self._rng.integers(len(held) * per_slot, size=count - len(found))
            slots, rest = held[drawn // per_slot], drawn % per_slot
            ok = valid[slots, rest // self._num_envs, rest % self._num_envs]
            found = np.concatenate([found, drawn[ok]])
        slots, rest = held[found // per_slot], found % per_slot
        return slots, rest // self._num_envs, rest % self._num_envs

    def _gather(self, slots: Array, rows: Array, envs: Array) -> dict[str, Array]:
        arrays = self._receiver.arrays
        ahead = n_step_return(
            arrays["reward"], arrays["terminated"], arrays["truncated"], arrays["valid"],
            slots, rows, envs, self._lookahead, self._gamma,
        )  # fmt: skip
        gathered = {
            "action": arrays["action"][slots, rows, envs],
            "reward": ahead.reward_B,
            "discount": ahead.discount_B,
        }
        for name in observation_names(arrays):
            array = arrays[name]
            gathered[name] = array[slots, rows, envs]
            following = array[slots, ahead.next_row_B, envs]
            final = arrays.get(FINAL_OBS + name[len(OBS) :])
            if final is not None:
                end = ahead.ended_B
                following[end] = final[slots[end], ahead.next_row_B[end] - 1, envs[end]]
            gathered[f"next_{name}"] = following
        return gathered

    def _note_use(self, slots: Array, keys: Array, version: int) -> int:
        """Return how many of them are used for the first time."""
        used = self._used.reshape(-1)
        fresh = np.unique(keys[~used[keys]])
        used[fresh] = True
        self._age.add(int((version - self._oldest_version[slots]).sum()), len(slots))
        return len(fresh)

    def finish(self, batch: Batch, priorities: Array | None = None) -> None:
        """Do nothing: every slot is kept."""

    def metrics(self) -> dict[str, float]:
        """Return the mean age of the items used, in versions, and the share of the store in use."""
        return {"age_versions": self._age.read(), "fill": len(self._held) / self._capacity}

    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = {"rng": self._rng.bit_generator.state, "owed": self._owed}
        if self._save_items:
            held = np.array(self._held, np.int64)
            state["items"] = {name: a[held] for name, a in self._receiver.arrays.items()}
            state["oldest_version"] = self._oldest_version[held]
            state["used"] = self._used[held]
        return state

    def load_state(self, state: dict[str, Any]) -> None:
        self._rng.bit_generator.state = state["rng"]
        self._owed = float(state.get("owed", 0.0))  # none in checkpoints of version 0.1
        if "items" not in state or self._held:
            return  # the items in memory are newer
        for index, oldest in enumerate(state["oldest_version"].tolist()):
            slot = self._receiver.claim()
            for name, saved in state["items"].items():
                self._receiver.arrays[name][slot] = saved[index]
            self._held.append(slot)
            self._oldest_version[slot] = oldest
            self._used[slot] = state["used"][index]
        for slot in self._held:  # only when all are copied: a learner that dies before leaves none
            self._receiver.keep(slot, _stamp_of_saved(int(self._oldest_version[slot])))
        self._end_warmup()

    def num_held(self) -> int:
        return len(self._held)


def _stamp_of_saved(oldest_version: int) -> Stamp:
    """Return a stamp with the version alone: a checkpoint does not keep the actor and the times."""
    return Stamp(-1, -1, oldest_version, oldest_version, 0, 0, 0)
