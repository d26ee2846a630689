"""GradientActor: simulates, and turns what it saw into gradients; the only role that touches
environments in algorithms that gather gradients.

Takes      the latest policy (Board), grants of slots (Stream)
Gives      its sum of gradients (contribution), and a token for each gradient in it (Stream)
Waits for  a grant, and after its round was closed for the next version
Unblocked  by the buffer, which grants slots, and by the learner, which publishes
Stops      between two ticks

    begin:  environments are reset, the policy is at its look-ahead point
    rows:   act, step; the slot is the room for it
    end:    the gradient is added to the sum, and held where it shall take a given time
    due:    the sum is posted, the slot goes off as the token

Every gradient starts from fresh environments, with random numbers that follow from the version and
from how many it made at that version before: whoever makes it, whenever, it is the same gradient.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tianji.actor.episodes import EpisodeLedger
from tianji.algorithms.interface import Acting, Estimator
from tianji.balance.gradient_timing import Timing
from tianji.channels.gauges import Activity, Gauge
from tianji.channels.interface import (
    BoardReader,
    Bytes,
    Contribution,
    ContributionWriter,
    Grant,
    Sender,
)
from tianji.envs.interface import World
from tianji.types import Clock, Stamp, Unroll

ENDS = ("valid", "terminated", "truncated")


@dataclass(frozen=True, slots=True)
class GradientActorPlan:
    """What one actor is told."""

    index: int
    num_rows: int
    """Rows of one gradient, at most."""
    seed: int
    times_rows: bool = False
    """With a Timing: what a gradient takes depends on its rows, so it is known at its end."""


class GradientActor:
    """One loop over its environments; `tick` begins a gradient, or is one row of it."""

    def __init__(
        self,
        plan: GradientActorPlan,
        world: World,
        acting: Acting,
        estimator: Estimator,
        read_policy: Callable[[Bytes], None],
        policy: BoardReader,
        sender: Sender,
        contributions: ContributionWriter,
        gauges: memoryview[int],
        now_ns: Clock = time.monotonic_ns,
        timing: Timing | None = None,
    ) -> None:
        """timing: gradients take a given time; without one they take what they take."""
        self._plan = plan
        self._world = world
        self._acting = acting
        self._estimator = estimator
        self._read_policy = read_policy
        self._policy = policy
        self._sender = sender
        self._contributions = contributions
        self._gauges = gauges
        self._now_ns = now_ns
        self._timing = timing
        self._ledger = EpisodeLedger(world.num_envs)
        self._grant: Grant | None = None
        self._unroll: Unroll = {}
        self._row = 0
        self._version = -1
        self._started_ns = 0
        self._is_done = False
        self._ended_ns = 0
        """When the gradient before was due, if it was held and nothing was waited for since."""
        self.index = plan.index
        self.is_working = False
        """A gradient has been begun and is neither handed over nor dropped."""
        self.due_ns = 0
        """When it may be handed over, where that is given and known; else 0."""

    def tick(self) -> bool:
        """Begin a gradient if one is wanted, else make one row of it."""
        if self._gauges[Gauge.LANE_RESETS] != self._gauges[Gauge.LANE_RESETS_DONE]:
            return False  # what the lane holds was granted to an actor that is dead
        if self._sender.is_stale():
            self._abandon()
        if self.is_working and not self.is_wanted():
            self._drop()
        if not self.is_working:
            return self._begin()
        return self._hand_over_when_due() if self._is_done else self._make_row()

    def is_wanted(self) -> bool:
        """The round that the gradient in work belongs to is still open."""
        return self._gauges[Gauge.CLOSED] <= self._version

    def _abandon(self) -> None:
        """The buffer was reborn and knows nothing of our slot."""
        if self.is_working:
            self._drop()
        self._grant = None
        self._sender.attach()

    def _drop(self) -> None:
        """The round was closed without the gradient in work. The slot is used for the next."""
        self._end_work()
        if self._now_ns() > self._started_ns:  # in simulated time nothing may have happened yet
            self._gauges[Gauge.DISCARDED] += 1
            self._gauges[Gauge.DISCARDED_STEPS] += self._num_steps(self._row)

    def _end_work(self) -> None:
        self.is_working = self._is_done = False
        self.due_ns = self._ended_ns = 0
        self._gauges[Gauge.STARTED_VERSION] = 0

    def _begin(self) -> bool:
        ended_ns, self._ended_ns = self._ended_ns, 0
        version = self._policy.version()
        if version < 0 or self._gauges[Gauge.CLOSED] > version:
            self._gauges[Gauge.ACTIVITY] = Activity.WAITING
            return False
        if self._grant is None:
            self._grant = self._sender.reserve()
        if self._grant is None:
            self._gauges[Gauge.ACTIVITY] = Activity.PACED
            return False
        self._started_ns = self._start_ns(ended_ns, version)
        if version != self._version:
            self._move()
        self._gauges[Gauge.ACTIVITY] = Activity.ACTING
        self._gauges[Gauge.STARTED_VERSION] = self._version + 1
        if self._gauges[Gauge.FIRST_STEP_NS] == 0:
            self._gauges[Gauge.FIRST_STEP_NS] = self._started_ns
        self._unroll = self._sender.unroll(self._grant.slot)
        self._begin_episodes()
        self._row = 0
        self.is_working = True
        if self._timing is not None:
            since_ns = self._gauges[Gauge.FIRST_STEP_NS]
            self._timing.begin(self._version, self._started_ns, since_ns)
            if not self._plan.times_rows:
                self.due_ns = self._timing.due_ns(self._plan.num_rows)
        return True

    def _start_ns(self, ended_ns: int, version: int) -> int:
        """Waking up late, or waiting for a core, is no part of a given time: it begins when the
        gradient before was due, or when the version was there that was waited for."""
        if self._timing is None or self._version < 0:
            return self._now_ns()
        opened_ns = self._gauges[Gauge.OPENED_NS]
        if version != self._version and opened_ns > self._started_ns:
            return opened_ns
        return ended_ns or self._now_ns()

    def _move(self) -> None:
        """To the point of the newest version. One who takes over goes on with the sum of the one
        who died, so that no gradient is made twice."""
        version = self._policy.latest(self._read_policy)
        estimator = self._estimator
        estimator.look_ahead()
        estimator.begin()
        if self._version < 0:
            sum_P = np.empty_like(estimator.sum_P)
            left = self._contributions.left(sum_P)
            if left is not None and left.version == version:
                estimator.load(sum_P, left.num_gradients)
        self._version = version

    def _begin_episodes(self) -> None:
        key = (self._version, self._estimator.count)
        rng = np.random.default_rng(np.random.SeedSequence(self._plan.seed, spawn_key=key))
        self._world.reset(int(rng.integers(2**31)), self._unroll)
        self._ledger.restart()
        self._acting.begin(rng, self._unroll, 0, 0)

    def _make_row(self) -> bool:
        row, unroll = self._row, self._unroll
        actions = self._acting.act(unroll, row)
        before_ns = self._now_ns()
        self._world.step(actions, unroll, row)
        unroll["row_ns"][row] = now_ns = self._now_ns()
        self._gauges[Gauge.ENV_NS] += now_ns - before_ns
        self._gauges[Gauge.HEARTBEAT_NS] = now_ns
        self._row = row + 1
        if self._row == self._plan.num_rows or self._estimator.is_complete(unroll, row):
            self._add()
            self._hand_over_when_due()
        return True

    def _add(self) -> None:
        """The rows are complete: they become a gradient."""
        unroll, end = self._unroll, self._row
        for name in ENDS:
            unroll[name][end:] = False
        _cut_episodes(unroll, end)
        self._acting.finish(unroll, 0)
        self._ledger.close_unroll(unroll, 0, end)
        self._estimator.add(unroll, end)
        self._is_done = True
        if self._timing is not None and self._plan.times_rows:
            self.due_ns = self._timing.due_ns(end)
        if self.due_ns and self._now_ns() > self.due_ns:
            self._gauges[Gauge.OVERDUE] += 1

    def _hand_over_when_due(self) -> bool:
        if self._now_ns() < self.due_ns:
            self._gauges[Gauge.ACTIVITY] = Activity.WAITING
            self._ended_ns = self.due_ns
            return False
        ended_ns = self._ended_ns
        self._hand_over()
        self._ended_ns = ended_ns
        return True

    def _hand_over(self) -> None:
        """First the sum, then the token: whoever counts the token finds its gradient there."""
        assert self._grant is not None
        contribution = Contribution(self._version, self._estimator.count)
        self._contributions.post(contribution, self._estimator.sum_P)
        steps = self._num_steps(self._row)
        stamp = Stamp(
            self._plan.index, self._grant.round, self._version, self._version, steps,
            self._started_ns, self._now_ns(),
        )  # fmt: skip
        self._sender.send(self._grant.slot, stamp)
        self._grant = None
        self._end_work()
        self._gauges[Gauge.STEPS] += steps
        self._gauges[Gauge.ITEMS] += 1
        self._gauges[Gauge.VERSION] = self._version

    def _num_steps(self, end: int) -> int:
        return int(np.count_nonzero(self._unroll["valid"][:end]))

    def state(self) -> dict[str, Any]:
        """Between two versions an actor holds nothing that the next one needs, but knows for how
        long it runs, where times are given."""
        if self._timing is None:
            return {}
        now_ns, has_begun = self._now_ns(), self.is_working and self.is_wanted()
        since_ns = self._gauges[Gauge.FIRST_STEP_NS] or now_ns
        return {"timing": self._timing.state(now_ns, since_ns, has_begun)}

    def load_state(self, state: dict[str, Any]) -> None:
        if self._timing is not None and "timing" in state:
            self._timing.load_state(state["timing"])

    def close(self) -> None:
        self._world.close()


def _cut_episodes(unroll: Unroll, end: int) -> None:
    """The returns that are shown are those that the gradient is made of: of the first episode in
    each environment, cut where the rows end. Later ones are cut too often to be shown, and one
    whose environment failed is not shown either."""
    terminated, truncated = unroll["terminated"][:end], unroll["truncated"][:end]
    has_ended = np.logical_or.accumulate(terminated | truncated | ~unroll["valid"][:end], axis=0)
    truncated[-1] |= ~has_ended[-1]
    terminated[1:] &= ~has_ended[:-1]
    truncated[1:] &= ~has_ended[:-1]
