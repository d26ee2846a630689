"""Adders: they add up the actors' sums of gradients when a round is closed.

    counts = adder.add_up(version, actors, sum_P)     # None while sums are still on their way

sum_P becomes the sum of factor * sum over these actors. The gather rule gives the factor for an
actor's true count of gradients. `counts` holds these counts, 0 for all other actors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from tianji.buffer.gather.rules import GatherRule
from tianji.channels.contributions import ContributionReader, HostSums, WeighedTotal
from tianji.channels.interface import Total
from tianji.types import Array


class Adding(Protocol):
    """Adds up the sums of a closed round, on the learner's side."""

    def add_up(self, version: int, actors: Iterable[int], sum_P: Array) -> list[int] | None: ...

    def reopen(self) -> None:
        """Forget sums that are on their way: the round is open again."""
        return

    def news(self) -> list[str]:
        """Return what a person should know now, each thing once."""
        return []


class AtLearner(Adding):
    """The server realisation: the learner reads every actor's sum from its board."""

    def __init__(
        self,
        rule: GatherRule,
        contributions: ContributionReader,
        num_parameters: int,
    ) -> None:
        self._rule = rule
        self._total = WeighedTotal(contributions, rule.weigh, num_parameters)

    def add_up(self, version: int, actors: Iterable[int], sum_P: Array) -> list[int]:
        counts = self._total.add_up(version, filter(self._rule.takes, actors))
        sum_P[:] = self._total.total_P
        return counts


class FromHosts(Adding):
    """The server realisation with actors on other hosts: each host adds up the sums of its actors
    when it is asked, and the learner adds those totals to the sums of the actors beside it."""

    def __init__(
        self,
        rule: GatherRule,
        contributions: ContributionReader,
        hosts: Sequence[HostSums],
        wake_gateway: Callable[[], None],
        num_parameters: int,
    ) -> None:
        """hosts: all other hosts of the actors."""
        self._rule = rule
        self._total = WeighedTotal(contributions, rule.weigh, num_parameters)
        self._hosts = hosts
        self._wake_gateway = wake_gateway
        self._asked: list[HostSums] | None = None
        """Hosts that are asked for their totals of the closed round; None before that."""

    def add_up(self, version: int, actors: Iterable[int], sum_P: Array) -> list[int] | None:
        wanted = set(filter(self._rule.takes, actors))
        if self._asked is None:
            self._asked = self._ask(version, wanted)
        if not all(host.has_answered() for host in self._asked):
            return None
        counts = self._total.add_up(version, wanted)
        for host in self._asked:
            for actor, count in zip(host.actors, host.add_to(self._total.total_P), strict=True):
                counts[actor] = count
        sum_P[:] = self._total.total_P
        self._asked = None
        return counts

    def _ask(self, version: int, wanted: set[int]) -> list[HostSums]:
        asked = [host for host in self._hosts if not wanted.isdisjoint(host.actors)]
        for host in asked:
            host.ask(version, wanted)
        if asked:
            self._wake_gateway()
        return asked

    def reopen(self) -> None:
        self._asked = None


class KeptTotal(Adding):
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
