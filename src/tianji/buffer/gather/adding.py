"""Adders: they add up the actors' sums of gradients when a round is closed.

    counts = adder.add_up(version, actors, sum_P)     # None while sums are still on their way

sum_P becomes the sum of factor * sum over these actors. The gather rule gives the factor for an
actor's true count of gradients. `counts` holds these counts, 0 for all other actors.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np

from tianji.buffer.gather.rules import GatherRule
from tianji.channels.contributions import ContributionReader
from tianji.channels.interface import Total
from tianji.types import Array


class Adding(Protocol):
    """Adds up the sums of a closed round, on the learner's side."""

    def add_up(self, version: int, actors: Iterable[int], sum_P: Array) -> list[int] | None: ...

    def news(self) -> list[str]:
        """Return what a person should know now, each thing once."""
        return []


class AtLearner(Adding):
    """The server realisation: the learner reads every actor's sum from its board."""

    def __init__(
        self,
        rule: GatherRule,
        contributions: ContributionReader,
        num_actors: int,
        num_parameters: int,
    ) -> None:
        self._rule = rule
        self._contributions = contributions
        self._num_actors = num_actors
        # In double precision, the order in which sums are added does not matter.
        self._total_P = np.zeros(num_parameters)
        self._one_P = np.empty(num_parameters, np.float32)

    def add_up(self, version: int, actors: Iterable[int], sum_P: Array) -> list[int]:
        counts = [0] * self._num_actors
        self._total_P[:] = 0.0
        for actor in sorted(actors):
            if not self._rule.takes(actor):
                continue
            found = self._contributions.read(actor, self._one_P)
            if found is None or found.version != version:
                continue
            factor, _ = self._rule.weigh(found.num_gradients)
            self._total_P += factor * self._one_P.astype(np.float64)
            counts[actor] = found.num_gradients
        sum_P[:] = self._total_P
        return counts


class KeptTotal:
    """Keeps the total of an all-reduce inside one process, so that every actor can take its step
    with it when its turn comes."""

    def __init__(self, adding: Adding) -> None:
        self._adding = adding
        self._version = -1
        self._total: Total | None = None

    def add_up(self, version: int, actors: Iterable[int], sum_P: Array) -> list[int] | None:
        counts = self._adding.add_up(version, actors, sum_P)
        if counts is not None:
            self._version, self._total = version, Total(sum_P.copy(), counts)
        return counts

    def news(self) -> list[str]:
        return self._adding.news()

    def is_under_way(self) -> bool:
        return False

    def total(self, version: int) -> Total | None:
        return self._total if version == self._version else None
