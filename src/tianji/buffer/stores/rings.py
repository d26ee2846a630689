"""The memory of a replay store: one ring of rows for each lane.

A row holds an observation of each environment of the lane, and the step that followed it. Rows are
counted from the first; row r lies at r % R of the ring.

    begin .. end - lookahead    steps that items may begin with, if they are valid
    end                         the newest observation; the step after it is not made yet

An unroll that does not continue the one before is written behind a gap of rows that are not valid,
so that no item reaches across.

The process that writes may die at any instruction. It first gives up the rows that will be
overwritten (`begin`), then copies, then advances `end`: whoever takes over finds whole rows.

L: lanes, R: rows of a ring, N: environments of a lane, B: chosen items.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tianji.buffer.stores.finals import NONE, FinalObservations
from tianji.buffer.stores.observations import HostObservations, Observations, flat_index, write_rows
from tianji.buffer.stores.ring_layout import (
    BEGIN,
    END,
    FINALS,
    MADE,
    ORIGIN,
    STEPS,
    UNKNOWN,
    RingLayout,
    sibling,
)
from tianji.ops.returns import n_step_return
from tianji.types import AGE, FINAL_OBS, LIFE_LOST, PLACE, PRIORITY, Array, Field

MakeObservations: TypeAlias = Callable[[Field, tuple[int, ...], int], Observations]
"""Makes the memory of one leaf: its field, the shape [L, R, N, ...], the frames of a stack."""


class Items(NamedTuple):
    """Steps that items begin with. row_B: counted from the first row of the lane."""

    lane_B: Array
    row_B: Array
    env_B: Array


class _Block(NamedTuple):
    """Rows of an unroll that are copied: `first` up to `last` of a slot, to rows of a lane."""

    slot: int
    lane: int
    offset: int
    """The lane's row for row 0 of the unroll."""
    first: int
    last: int
    continues: bool
    """The observation of the first row is there already, and those that it looks back to."""


class Leaf(NamedTuple):
    """One leaf of the observations. history: rows that it looks back."""

    name: str
    history: int
    memory: Observations


class Added(NamedTuple):
    """What an unroll has changed."""

    lane: int
    given_up: range
    """Rows whose items are gone."""
    begun: range
    """Rows whose items are there now."""
    priority_TN: Array | None
    """Priorities of the last rows that have begun, where the actor has computed them."""


class Rings:
    """Stores unrolls, and finds items in them.

    added = rings.put(arrays, slot, lane, version)      # copies: the slot is free again
    arrays = rings.gather(items, gamma)
    """

    def __init__(
        self,
        layout: RingLayout,
        memory: Any,
        make_observations: MakeObservations | None = None,
        clip_rewards: float | None = None,
    ) -> None:
        """make_observations: where observations do not lie in this memory. What lies elsewhere is
        lost with its process, so the store then begins empty. clip_rewards: their largest size."""
        self.layout = layout
        self._clip_rewards = clip_rewards
        self.arrays = layout.arrays(memory)
        self.num_rows, self.num_envs = self.shape = layout.num_rows, layout.unroll.num_envs
        self._gap = layout.history + 1
        if make_observations is not None:
            self.arrays["head"][:] = 0
        self._heads = [memoryview(head) for head in self.arrays["head"]]
        for head in self._heads:
            head[MADE] = UNKNOWN
        names = {field.name for field in layout.unroll.fields}
        self._has_life_lost, self._has_priority = LIFE_LOST in names, PRIORITY in names
        self._steps = [
            [(name, self.arrays[name][lane]) for name in STEPS] for lane in range(layout.num_lanes)
        ]
        self._finals = FinalObservations(layout, self.arrays) if layout.finals else None
        self.observed = [
            Leaf(field.name, field.history, self._make(field, names, make_observations))
            for field in layout.observations
        ]

    def _make(
        self, field: Field, names: Set[str], make_observations: MakeObservations | None
    ) -> Observations:
        num_frames = field.history + 1 if sibling(AGE, field.name) in names else 0
        if make_observations is None:
            return HostObservations(self.arrays[field.name], num_frames)
        return make_observations(field, self.layout.observation_shape(field), num_frames)

    def begins(self) -> list[int]:
        """Return the first row of each lane that items may begin in."""
        begins: list[int] = self.arrays["head"][:, BEGIN].tolist()
        return begins

    def counts(self) -> list[int]:
        """Return how many rows of each lane items may begin in."""
        return self.layout.count_rows(self.arrays["head"])

    def put(self, arrays: Mapping[str, Array], slot: int, lane: int, version: int) -> Added:
        """Copy the rows of an unroll that are new."""
        head, repeated = self._heads[lane], self.layout.lookahead - 1
        origin, before, made = arrays[PLACE][slot, 0].tolist()
        continues = before > 0 and head[MADE] == before and head[ORIGIN] == origin
        head[MADE] = UNKNOWN
        begin, end = head[BEGIN], head[END]
        first, last = (repeated if continues else 0), repeated + made
        row = end if continues else end + self._gap
        if end == 0:  # the first unroll: no items lie in the gap before it
            begin = row
        block = _Block(slot, lane, row - first, first, last, continues)
        new_end = row + last - first
        new_begin = max(begin, new_end - self.num_rows + self._gap)
        ended = None
        if self._finals is not None:
            ended = self._finals.find(arrays, slot, first, last)
            new_begin = max(new_begin, self._finals.begin_after(lane, head[FINALS], len(ended)))
        head[BEGIN] = new_begin
        if not continues:
            self.arrays["valid"][lane][np.arange(end, row) % self.num_rows] = False
        self._copy_steps(arrays, block, version)
        self._copy_observations(arrays, block)
        if self._finals is not None and ended is not None:
            self._finals.copy(arrays, slot, lane, block.offset, ended, head[FINALS])
            head[FINALS] += len(ended)
        head[END], head[ORIGIN], head[MADE] = new_end, origin, before + made
        begun = range(max(new_begin, end - repeated), new_end - repeated)
        priority_TN = arrays[PRIORITY][slot, :made] if self._has_priority else None
        return Added(lane, range(begin, min(new_begin, end)), begun, priority_TN)

    def _copy_steps(self, arrays: Mapping[str, Array], block: _Block, version: int) -> None:
        slot, lane = block.slot, block.lane
        begin = (block.offset + block.first) % self.num_rows
        cut = min(block.last, block.first + self.num_rows - begin)
        pieces = [(slice(begin, begin + cut - block.first), slice(block.first, cut))]
        if cut < block.last:
            pieces.append((slice(0, block.last - cut), slice(cut, block.last)))
        for ours, theirs in pieces:
            for name, ring in self._steps[lane]:
                ring[ours] = arrays[name][slot, theirs]
            if self._clip_rewards is not None:
                reward_TN = self.arrays["reward"][lane, ours]
                np.clip(reward_TN, -self._clip_rewards, self._clip_rewards, out=reward_TN)
            if self._has_life_lost:
                self.arrays["terminated"][lane, ours] |= arrays[LIFE_LOST][slot, theirs]
            if self._finals is not None:
                self.arrays["final"][lane, ours] = NONE
            self.arrays["version"][lane, ours] = version
            self.arrays["used"][lane, ours] = False

    def _copy_observations(self, arrays: Mapping[str, Array], block: _Block) -> None:
        slot, lane, offset, first, last, continues = block
        for field in self.layout.ages:
            begin = first + 1 if continues else 0
            rows = arrays[field.name][slot, begin : last + 1]
            write_rows(self.arrays[field.name][lane], offset + begin, rows)
        for name, history, observations in self.observed:
            begin = history + first + 1 if continues else 0
            rows = arrays[name][slot, begin : history + last + 1]
            observations.write(lane, offset - history + begin, rows)

    def gather(self, items: Items, gamma: float, n_step: int | None = None) -> dict[str, Any]:
        """Return the transitions that begin with these steps, as replay batches name them. n_step:
        rewards of a return; as many as the layout looks ahead if not given."""
        arrays, (lane_B, row_B, env_B) = self.arrays, items
        ahead = n_step_return(
            arrays["reward"], arrays["terminated"], arrays["truncated"], arrays["valid"],
            lane_B, row_B, env_B, n_step or self.layout.lookahead, gamma,
        )  # fmt: skip
        at_B, next_B = self.place(items), ahead.next_row_B
        action = arrays["action"]
        gathered = {
            "action": action.reshape(-1, *action.shape[3:]).take(at_B, axis=0),
            "reward": ahead.reward_B,
            "discount": ahead.discount_B,
        }
        following = Items(lane_B, next_B, env_B)
        for name, _, observations in self.observed:
            age_B = next_age_B = None
            if (ages := arrays.get(sibling(AGE, name))) is not None:
                age_B = ages.reshape(-1).take(at_B)
                next_age_B = ages.reshape(-1).take(self.place(following))
            gathered[name] = observations.gather(lane_B, row_B, env_B, age_B)
            gathered[f"next_{name}"] = observations.gather(lane_B, next_B, env_B, next_age_B)
        if self._finals is not None:
            (ended_B,) = np.nonzero(ahead.ended_B)
            last = Items(lane_B[ended_B], next_B[ended_B] - 1, env_B[ended_B])
            entry_B = arrays["final"].reshape(-1).take(self.place(last))
            known_B = entry_B != NONE
            for name, _, observations in self.observed:
                values_B = arrays[sibling(FINAL_OBS, name)][last.lane_B[known_B], entry_B[known_B]]
                observations.replace(gathered[f"next_{name}"], ended_B[known_B], values_B)
        return gathered

    def place(self, items: Items) -> Array:
        """Return where these steps lie in arrays [L, R, N], flattened."""
        return flat_index(self.shape, *items)
