"""How a replay store chooses its items: here all alike; proportional.py has priorities.

L: lanes, B: items of a batch.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from tianji.buffer.stores.rings import Added, Items, Rings
from tianji.types import Array

MOST_TRIES = 10_000
"""Draws for one batch: reset rows are a small part of all."""


class Sample(NamedTuple):
    """Items, and their weights where they are not drawn alike.

    largest_U: what the weights of each minibatch were divided by, (1 / P)^beta of the rarest item:
        learners with stores of their own bring their weights to one scale with it
    """

    items: Items
    weight_B: Array | None
    largest_U: Array | None = None


class Sampler(Protocol):
    """Draws items from the rings of a store."""

    def added(self, added: Added) -> None:
        """Take note of an unroll that was put."""
        ...

    def draw(self, rng: np.random.Generator, count: int, minibatch: int) -> Sample:
        """Draw `count` items, in minibatches."""
        ...

    def learned(self, items: Items, priority_B: Array) -> None:
        """Take the learner's priorities of these items; some may have been given up since."""
        ...

    def state(self) -> dict[str, Any]: ...

    def load_state(self, state: dict[str, Any]) -> None: ...


class UniformSampler:
    """Every valid step has the same chance: draws from all rows, and again for those that only
    reset."""

    def __init__(self, rings: Rings) -> None:
        self._rings = rings
        self._valid = rings.arrays["valid"].reshape(-1)

    def added(self, added: Added) -> None:
        """Do nothing: the rows are looked at when they are drawn."""

    def draw(self, rng: np.random.Generator, count: int, minibatch: int) -> Sample:
        begin_L = np.array(self._rings.begins())
        ends_L = np.cumsum(self._rings.counts()) * self._rings.num_envs
        items = self._try(rng, count, begin_L, ends_L)
        tries = 1
        while (missing := count - len(items.row_B)) > 0:
            assert (tries := tries + 1) < MOST_TRIES, "the store holds no valid step"
            more = self._try(rng, missing, begin_L, ends_L)
            items = Items(*map(np.concatenate, zip(items, more, strict=True)))
        return Sample(items, None)

    def _try(self, rng: np.random.Generator, count: int, begin_L: Array, ends_L: Array) -> Items:
        """Draw steps and return those that are valid."""
        drawn_B = rng.integers(ends_L[-1], size=count)
        lane_B = ends_L.searchsorted(drawn_B, side="right")
        first_L = np.concatenate([[0], ends_L[:-1]])
        row_B, env_B = np.divmod(drawn_B - first_L.take(lane_B), self._rings.num_envs)
        items = Items(lane_B, row_B + begin_L.take(lane_B), env_B)
        ok_B = self._valid.take(self._rings.place(items))
        return items if ok_B.all() else Items(*(each[ok_B] for each in items))

    def learned(self, items: Items, priority_B: Array) -> None:
        """Do nothing: all items stay alike."""

    def state(self) -> dict[str, Any]:
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        """Do nothing: nothing was saved."""
