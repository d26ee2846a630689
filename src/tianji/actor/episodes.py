"""The episodes of an item: each item starts new ones, or goes on where the item before it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tianji.actor.assembler import Start
from tianji.algorithms.memory import forget_ended
from tianji.types import MEMORY, NEXT_MEMORY, PLACE, Array, Unroll


class ItemEpisodes(Protocol):
    """Says how the environments begin an item, and what the next item takes over from it."""

    first_row: int
    """The first row that is made; those before it repeat the end of the previous item."""
    go_on: bool
    """Episodes go on from one item to the next."""

    def begin(self, unroll: Unroll, round_number: int, key: tuple[int, ...]) -> Start:
        """Begin an item. key: tells it apart from all other items of this actor, whoever makes
        it."""

    def close(self, unroll: Unroll, end: int) -> None:
        """Mark where the episodes of the item end, before they are counted."""

    def keep(self, unroll: Unroll, end: int) -> None:
        """Keep what the next item needs of the rows before `end`."""

    def state(self) -> dict[str, Any] | None:
        """Return what the next item needs; None where nothing is known yet."""

    def load_state(self, state: dict[str, Any]) -> None: ...


class FreshEpisodes:
    """Resets all environments for every item, with random numbers that follow from its key."""

    first_row = 0
    go_on = False

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def begin(self, unroll: Unroll, round_number: int, key: tuple[int, ...]) -> Start:
        rng = np.random.default_rng(np.random.SeedSequence(self._seed, spawn_key=key))
        return Start(rng, is_fresh=True)

    def close(self, unroll: Unroll, end: int) -> None:
        """Show the returns that the item is made of: the first episode of each environment, cut
        where the rows end. Later episodes are cut too often to be shown, and one whose environment
        failed is not shown either."""
        terminated, truncated = unroll["terminated"][:end], unroll["truncated"][:end]
        has_ended = np.logical_or.accumulate(
            terminated | truncated | ~unroll["valid"][:end], axis=0
        )
        truncated[-1] |= ~has_ended[-1]
        terminated[1:] &= ~has_ended[:-1]
        truncated[1:] &= ~has_ended[:-1]

    def keep(self, unroll: Unroll, end: int) -> None:
        """Keep nothing: the next item does not depend on this one."""

    def state(self) -> dict[str, Any]:
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        """Do nothing: nothing was saved."""


@dataclass(frozen=True, slots=True)
class OngoingPlan:
    """OngoingPlan(first_row=0, steps_per_round=256, seed=1, row_names=("action", "reward"),
    observed={"obs": 0})"""

    first_row: int
    """Rows before it repeat the end of the previous item (n-step returns look ahead)."""
    steps_per_round: int
    """Environment steps of one item of every actor."""
    seed: int
    row_names: Sequence[str]
    """Fields with one entry for each row, other than the observations; the layout names them."""
    observed: Mapping[str, int]
    """Fields with one entry for each observation, and how many observations each looks back."""


class OngoingEpisodes:
    """Lets every item go on where the item before it ended."""

    go_on = True

    def __init__(self, plan: OngoingPlan) -> None:
        self._plan = plan
        self.first_row = plan.first_row
        self._rng = np.random.default_rng()
        self._carry: dict[str, Array] | None = None
        self._origin = -1
        """Round in which the environments were reset."""
        self._made = 0
        """Rows made since then."""

    def begin(self, unroll: Unroll, round_number: int, key: tuple[int, ...] = ()) -> Start:
        """Random numbers of fresh environments follow from the seed and the round, so that an actor
        that takes over, after a death or a resume, does not repeat the same episodes."""
        is_fresh = self._carry is None
        if self._carry is None:
            sequence = np.random.SeedSequence(self._plan.seed, spawn_key=(round_number,))
            self._rng = np.random.default_rng(sequence)
            self._origin, self._made = round_number, 0
            if MEMORY in unroll:
                unroll[MEMORY][:] = 0.0
        else:
            for name, rows in self._carry.items():
                unroll[name][: len(rows)] = rows
        return Start(self._rng, is_fresh, round_number * self._plan.steps_per_round)

    def close(self, unroll: Unroll, end: int) -> None:
        """Episodes go on in the next item."""

    def keep(self, unroll: Unroll, end: int) -> None:
        """Keep what the next item repeats: the last observation, for n-step returns the rows before
        it, and the states of a memory. It is copied, because the slot belongs to the buffer once it
        is sent."""
        first = self.first_row
        if PLACE in unroll:
            unroll[PLACE][:] = self._origin, self._made, end - first
        self._made += end - first
        self._carry = {
            name: unroll[name][end - first : history + end + 1].copy()
            for name, history in self._plan.observed.items()
        }
        if first:
            for name in self._plan.row_names:
                self._carry[name] = unroll[name][end - first : end].copy()
        if NEXT_MEMORY in unroll:
            self._carry[MEMORY] = state_NS = unroll[NEXT_MEMORY].copy()
            if end > first:
                forget_ended(unroll, end - 1, state_NS)

    def state(self) -> dict[str, Any] | None:
        if self._carry is None:
            return None
        carry = {name: rows.copy() for name, rows in self._carry.items()}
        place = [self._origin, self._made]
        return {"carry": carry, "rng": self._rng.bit_generator.state, "place": place}

    def load_state(self, state: dict[str, Any]) -> None:
        self._carry = {name: np.array(rows) for name, rows in state["carry"].items()}
        self._rng.bit_generator.state = state["rng"]
        self._origin, self._made = state.get("place", (-1, 0))  # checkpoints of 0.1 have none
