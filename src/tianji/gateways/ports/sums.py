"""The actors' host: adds up the sums of its actors when the learner's host asks for them.

Takes: questions (a forwarded board), sums of gradients from the boards of the local actors. Gives:
one total for each question, whatever the number of actors, in double precision, so that the learner
gets the bits that it would have added up itself. The other end is a BoardSink.
"""

from __future__ import annotations

from tianji.channels.contributions import (
    ContributionReader,
    Weigh,
    WeighedTotal,
    answer_of,
    read_wanted,
)
from tianji.channels.interface import BoardReader
from tianji.gateways.ports.boards import VERSION
from tianji.gateways.ports.sending import SendingPort


class SumsSource(SendingPort):
    """Answers the latest question."""

    def __init__(
        self,
        name: str,
        wanted: BoardReader,
        contributions: ContributionReader,
        weigh: Weigh,
        max_bytes: int,
    ) -> None:
        """wanted: the local board of questions. contributions: those of the actors here, in the
        order in which questions name them."""
        self.wiring = f"board {name}"
        self.max_body_bytes = max_bytes
        self._wanted = wanted
        self._contributions = contributions
        self._weigh = weigh
        self._total: WeighedTotal | None = None
        self._answered = -1
        self._answer_bytes = 0

    def pump(self) -> bool:
        if self._wanted.version() <= self._answered or not self._outlet.has_room(
            self._answer_bytes
        ):
            return False
        wanted = read_wanted(self._wanted)
        self._answered = wanted.number
        if (total := self._open_total()) is None:
            return False  # it was asked of a host that had these actors before
        answer = answer_of(total.add_up(wanted.version, wanted.actors), total.total_P)
        self._answer_bytes = len(answer)
        self._outlet.send(VERSION.pack(wanted.number), answer)
        return True

    def _open_total(self) -> WeighedTotal | None:
        """Return what adds up; None while no actor here has a sum, whose length is not known."""
        if self._total is None and (size := self._contributions.num_parameters()):
            self._total = WeighedTotal(self._contributions, self._weigh, size)
        return self._total

    def reset(self) -> None:
        """Answer the latest question again, should a new peer repeat it."""
        self._answered = -1
