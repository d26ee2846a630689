"""The assembler of unrolls: rows of all environments, each unroll going on where the last ended."""

from __future__ import annotations

from tianji.actor.assembler import ActorOrders, Inference, Start
from tianji.actor.episodes import OngoingEpisodes
from tianji.types import Clock, Unroll


class UnrollAssembler:
    """Carries the last rows over, refreshes the policy at every row, and hands over short."""

    carries_episodes = True
    due_ns = 0

    def __init__(
        self, episodes: OngoingEpisodes, inference: Inference, orders: ActorOrders, now_ns: Clock
    ) -> None:
        self._episodes = episodes
        self._orders = orders
        self._now_ns = now_ns
        self.first_row = episodes.first_row
        self.before_row = inference.refresh
        self.close_episodes = episodes.close
        self.finish = self.drop = episodes.keep  # environments have moved on, even if it is dropped
        self.state = episodes.state
        self.load_state = episodes.load_state
        self._round = 0

    def may_begin(self, newest: int) -> bool:
        return newest >= 0

    def start_ns(self, newest: int) -> int:
        return self._now_ns()

    def begin(
        self, unroll: Unroll, round_number: int, started_ns: int, first_step_ns: int
    ) -> Start:
        self._round = round_number
        return self._episodes.begin(unroll, round_number)

    def is_wanted(self) -> bool:
        return True

    def is_complete(self, unroll: Unroll, row: int) -> bool:
        """Return whether the buffer asks for the unroll now, because it would soon be too old.

        Not where rows are repeated for n-step returns: the repeated items would be stored twice.
        """
        return self.first_row == 0 and self._orders.is_hurried(self._round)

    def post(self) -> None:
        """Everything is in the slot."""
