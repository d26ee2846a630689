"""The assembler of gradients: each item is a gradient that is added to the actor's sum.

Every gradient is computed at the look-ahead point of the newest version. If it starts from fresh
environments, its random numbers follow from the version and from how many gradients it made at that
version before: whichever actor makes it, and whenever, it is the same gradient. If its episodes go
on from the gradient before, it depends on that one too. The slot is only a token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tianji.actor.assembler import ActorOrders, Inference, Start
from tianji.actor.episodes import ItemEpisodes
from tianji.algorithms.interface import Estimator
from tianji.balance.given_times import Timing
from tianji.channels.contributions import Contribution, ContributionWriter
from tianji.channels.gauges import Gauge
from tianji.types import GRADIENTS, Clock, Unroll


@dataclass(frozen=True, slots=True)
class GradientPlan:
    """GradientPlan(num_rows=100)"""

    num_rows: int
    """Rows that are made for one gradient, at most."""
    times_rows: bool = False
    """With a Timing: the given time of a gradient depends on its rows, known at its end."""


class GradientAssembler:
    """Adds gradients to a sum and posts the sum before each token."""

    def __init__(
        self,
        plan: GradientPlan,
        inference: Inference,
        estimator: Estimator,
        episodes: ItemEpisodes,
        contributions: ContributionWriter,
        orders: ActorOrders,
        gauges: memoryview[int],
        now_ns: Clock,
        timing: Timing | None = None,
    ) -> None:
        """timing: gradients take a given time; without one they take as long as they need."""
        self._plan = plan
        self._inference = inference
        self._estimator = estimator
        self._episodes = episodes
        self.first_row = episodes.first_row
        self.carries_episodes = episodes.go_on
        self.close_episodes = episodes.close
        self._contributions = contributions
        self._orders = orders
        self._gauges = gauges
        self._now_ns = now_ns
        self._timing = timing
        self._version = -1
        self._started_ns = 0
        self._is_working = False
        self._ended_ns = self._previous_ns = 0
        """Due time of the previous gradient, if it was held and the actor has not waited since."""
        self.due_ns = 0

    def may_begin(self, newest: int) -> bool:
        self._previous_ns, self._ended_ns = self._ended_ns, 0
        return newest >= 0 and not self._orders.is_closed(newest)

    def start_ns(self, newest: int) -> int:
        """Waking up late, or waiting for a core, is no part of a given time: it begins when the
        gradient before was due, or when the version appeared that was waited for."""
        if self._timing is None or self._version < 0:
            return self._now_ns()
        opened_ns = self._orders.opened_ns()
        if newest != self._version and opened_ns > self._started_ns:
            return opened_ns
        return self._previous_ns or self._now_ns()

    def begin(
        self, unroll: Unroll, round_number: int, started_ns: int, first_step_ns: int
    ) -> Start:
        if self._inference.version != self._version:
            self._move(self._inference.version)
        self._started_ns = started_ns
        self._is_working = True
        if self._timing is not None:
            self._timing.begin(self._version, started_ns, first_step_ns)
            if not self._plan.times_rows:
                self.due_ns = self._timing.due_ns(self._plan.num_rows)
        key = (self._version, self._estimator.count)
        return self._episodes.begin(unroll, round_number, key)

    def _move(self, version: int) -> None:
        """Move to the look-ahead point of a version. An actor that takes over from a dead one
        continues its sum, so that no gradient is made twice."""
        estimator = self._estimator
        estimator.look_ahead()
        estimator.begin(version)
        if self._version < 0:
            sum_P = np.empty_like(estimator.sum_P)
            left = self._contributions.left(sum_P)
            if left is not None and left.version == version:
                estimator.load(sum_P, left.num_gradients)
        self._version = version

    def is_wanted(self) -> bool:
        return not self._orders.is_closed(self._version)

    def before_row(self) -> None:
        """All rows of a gradient are made at the point where it began."""

    def is_complete(self, unroll: Unroll, row: int) -> bool:
        return self._estimator.is_complete(unroll, row)

    def finish(self, unroll: Unroll, end: int) -> None:
        self._episodes.keep(unroll, end)
        num_before = self._estimator.count
        self._estimator.add(unroll, end)
        if GRADIENTS in unroll:
            unroll[GRADIENTS][:] = self._estimator.count - num_before
        if self._timing is not None and self._plan.times_rows:
            self.due_ns = self._timing.due_ns(end - self.first_row)
        if self.due_ns:
            now_ns = self._now_ns()
            self._gauges[Gauge.OVERDUE] += now_ns > self.due_ns
            self._ended_ns = self.due_ns if now_ns < self.due_ns else 0

    def post(self) -> None:
        """Post the sum before the token, so that a counted token finds its gradient in the sum."""
        contribution = Contribution(self._version, self._estimator.count)
        self._contributions.post(contribution, self._estimator.sum_P)
        self.due_ns = 0
        self._is_working = False

    def drop(self, unroll: Unroll, end: int) -> None:
        self._episodes.keep(unroll, end)
        self.due_ns = self._ended_ns = 0
        self._is_working = False

    def state(self) -> dict[str, Any] | None:
        """Return what the next gradient needs of the environments and, where times are given, for
        how long this actor has run."""
        state = self._episodes.state()
        if self._timing is None or state is None:
            return state
        now_ns, has_begun = self._now_ns(), self._is_working and self.is_wanted()
        since_ns = self._gauges[Gauge.FIRST_STEP_NS] or now_ns
        return {**state, "timing": self._timing.state(now_ns, since_ns, has_begun)}

    def load_state(self, state: dict[str, Any]) -> None:
        self._episodes.load_state(state)
        if self._timing is not None and "timing" in state:
            self._timing.load_state(state["timing"])
