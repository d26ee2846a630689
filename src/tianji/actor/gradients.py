"""The assembler of gradients: each item is a gradient that is added to the actor's sum.

Every gradient starts from fresh environments, at the look-ahead point of the newest version, with
random numbers that follow from the version and from how many gradients it made at that version
before: whichever actor makes it, and whenever, it is the same gradient. The slot is only a token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tianji.actor.assembler import ActorOrders, Inference, Start
from tianji.algorithms.interface import Estimator
from tianji.balance.given_times import Timing
from tianji.channels.contributions import Contribution, ContributionWriter
from tianji.channels.gauges import Gauge
from tianji.types import Clock, Unroll


@dataclass(frozen=True, slots=True)
class GradientPlan:
    """GradientPlan(num_rows=100, seed=1)"""

    num_rows: int
    """Rows of one gradient, at most."""
    seed: int
    times_rows: bool = False
    """With a Timing: the given time of a gradient depends on its rows, known at its end."""


class GradientAssembler:
    """Adds gradients to a sum and posts the sum before each token."""

    first_row = 0
    carries_episodes = False

    def __init__(
        self,
        plan: GradientPlan,
        inference: Inference,
        estimator: Estimator,
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
        rng = np.random.default_rng(np.random.SeedSequence(self._plan.seed, spawn_key=key))
        return Start(rng, is_fresh=True)

    def _move(self, version: int) -> None:
        """Move to the look-ahead point of a version. An actor that takes over from a dead one
        continues its sum, so that no gradient is made twice."""
        estimator = self._estimator
        estimator.look_ahead()
        estimator.begin()
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

    def close_episodes(self, unroll: Unroll, end: int) -> None:
        """Show the returns that the gradient is made of: the first episode of each environment, cut
        where the rows end. Later episodes are cut too often to be shown, and one whose environment
        failed is not shown either."""
        terminated, truncated = unroll["terminated"][:end], unroll["truncated"][:end]
        has_ended = np.logical_or.accumulate(
            terminated | truncated | ~unroll["valid"][:end], axis=0
        )
        truncated[-1] |= ~has_ended[-1]
        terminated[1:] &= ~has_ended[:-1]
        truncated[1:] &= ~has_ended[:-1]

    def finish(self, unroll: Unroll, end: int) -> None:
        self._estimator.add(unroll, end)
        if self._timing is not None and self._plan.times_rows:
            self.due_ns = self._timing.due_ns(end)
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
        self.due_ns = self._ended_ns = 0
        self._is_working = False

    def state(self) -> dict[str, Any]:
        """Between two versions an actor holds nothing that the next one needs, but knows for how
        long it has run, where times are given."""
        if self._timing is None:
            return {}
        now_ns, has_begun = self._now_ns(), self._is_working and self.is_wanted()
        since_ns = self._gauges[Gauge.FIRST_STEP_NS] or now_ns
        return {"timing": self._timing.state(now_ns, since_ns, has_begun)}

    def load_state(self, state: dict[str, Any]) -> None:
        if self._timing is not None and "timing" in state:
            self._timing.load_state(state["timing"])
