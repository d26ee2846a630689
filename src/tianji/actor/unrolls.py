"""The assembler of unrolls: rows of all environments, each unroll going on where the last ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tianji.actor.assembler import ActorOrders, Inference, Start
from tianji.algorithms.memory import forget_ended
from tianji.types import MEMORY, NEXT_MEMORY, PLACE, Array, Clock, Unroll


@dataclass(frozen=True, slots=True)
class UnrollPlan:
    """UnrollPlan(first_row=0, steps_per_round=256, seed=1, row_names=("action", "reward"),
    observed={"obs": 0})"""

    first_row: int
    """Rows before it repeat the end of the previous unroll (n-step returns look ahead)."""
    steps_per_round: int
    """Environment steps of one unroll of every actor."""
    seed: int
    row_names: Sequence[str]
    """Fields with one entry for each row, other than the observations; the layout names them."""
    observed: Mapping[str, int]
    """Fields with one entry for each observation, and how many observations each looks back."""


class UnrollAssembler:
    """Carries the last rows over, refreshes the policy at every row, and hands over short."""

    carries_episodes = True
    due_ns = 0

    def __init__(
        self, plan: UnrollPlan, inference: Inference, orders: ActorOrders, now_ns: Clock
    ) -> None:
        self._plan = plan
        self._orders = orders
        self._now_ns = now_ns
        self.first_row = plan.first_row
        self.before_row = inference.refresh
        self._round = 0
        self._rng = np.random.default_rng()
        self._carry: dict[str, Array] | None = None
        self._origin = -1
        """Round in which the environments were reset."""
        self._made = 0
        """Rows made since then."""
        self._observations: list[str] = []

    def may_begin(self, newest: int) -> bool:
        return newest >= 0

    def start_ns(self, newest: int) -> int:
        return self._now_ns()

    def begin(
        self, unroll: Unroll, round_number: int, started_ns: int, first_step_ns: int
    ) -> Start:
        """Random numbers of fresh environments follow from the seed and the round, so that an actor
        that takes over, after a death or a resume, does not repeat the same episodes."""
        self._round = round_number
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

    def is_wanted(self) -> bool:
        return True

    def is_complete(self, unroll: Unroll, row: int) -> bool:
        """Return whether the buffer asks for the unroll now, because it would soon be too old.

        Not where rows are repeated for n-step returns: the repeated items would be stored twice.
        """
        return self.first_row == 0 and self._orders.is_hurried(self._round)

    def close_episodes(self, unroll: Unroll, end: int) -> None:
        """Episodes go on in the next unroll."""

    def finish(self, unroll: Unroll, end: int) -> None:
        """Keep what the next unroll repeats: the last observation, for n-step returns the rows
        before it, and the state of a memory. It is copied, because the slot belongs to the buffer
        once it is sent."""
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

    def post(self) -> None:
        """Everything is in the slot."""

    def drop(self, unroll: Unroll, end: int) -> None:
        """The environments have moved on, so the next unroll starts from where this one ended."""
        self.finish(unroll, end)

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
