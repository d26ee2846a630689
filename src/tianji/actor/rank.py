"""An actor's part in an all-reduce; the other end is buffer/gather/reducing.py.

Rank gives the actor's sum to the team:

Takes      the number of the team, the version that is wanted, and the sum that the actor posted
Gives      that sum to the team, once per version
Waits for  nothing: the collective has a thread of its own
Unblocked  by that thread, which rings
Stops      between two ticks

OwnPolicy takes the learner's step with the total. The actor uses it like the board with the policy.
From the real board it needs only the version, which shows that the learner has taken the step too.
It reads the parameters from the board only when it has missed a step: at its start, without a
total, or after the learner was restored.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from torch import nn

from tianji.actor.assembler import ActorOrders
from tianji.algorithms.interface import Update
from tianji.algorithms.whole import WholeSnapshot
from tianji.channels.contributions import ContributionWriter
from tianji.channels.gauges import Gauge
from tianji.channels.interface import BoardReader, Bytes, Total, Totals
from tianji.channels.orders import ActorRows
from tianji.channels.reduce import Call, GlooReduce, Team
from tianji.errors import ReduceBroken
from tianji.models.tensors import Snapshot
from tianji.types import Array, Batch


class Rank:
    """Gives the sum that the actor posted last, when it is wanted; keeps the total."""

    def __init__(
        self,
        index: int,
        num_actors: int,
        num_parameters: int,
        reduce: GlooReduce,
        contributions: ContributionWriter,
        weigh: Callable[[int], tuple[float, float]],
        rows: ActorRows,
    ) -> None:
        """weigh: the gather rule's."""
        self._index = index
        self._num_parameters = num_parameters
        self._reduce = reduce
        self._contributions = contributions
        self._weigh = weigh
        self._gauges = rows.gauges
        self._orders = ActorOrders(rows)
        self._sum_P = np.empty(num_parameters, np.float32)
        self._values = np.empty(num_parameters + num_actors)
        # A call to the actor before this one is not for us.
        self._word = self._orders.call()
        """The call that was answered last."""
        self._team = Team(Call.of_word(self._word).team, ())

    def tick(self) -> bool:
        """Give the sum if it is wanted; return whether it was given."""
        if not self._orders.is_lane_ready():
            return False
        self._gauges[Gauge.REDUCE_READY] = self._orders.num_predecessors() + 1
        word = self._orders.call()
        if word == self._word:
            return False
        self._word = word
        call = Call.of_word(word)
        if call.team != self._team.number:
            self._team = self._reduce.team(call.team)
        if self._index not in self._team.actors:
            return False
        rank = 1 + self._team.actors.index(self._index)
        self._reduce.give(self._team, rank, self._mine(call.version))
        return True

    def _mine(self, version: int) -> Array:
        """Return the weighted sum with its count; zeros where it is of another version: then it was
        in an earlier total or came too late for one."""
        self._values[:] = 0.0
        left = self._contributions.left(self._sum_P)
        if left is not None and left.version == version:
            factor, _ = self._weigh(left.num_gradients)
            np.multiply(self._sum_P, factor, out=self._values[: self._num_parameters])
            self._values[self._num_parameters + self._index] = left.num_gradients
        return self._values

    def _is_current(self) -> bool:
        """Return whether our team is still the one called; otherwise its collective is void."""
        return self._orders.call() == self._word and self._index in self._team.actors

    def is_under_way(self) -> bool:
        return self._is_current() and self._reduce.is_under_way()

    def total(self, version: int) -> Total | None:
        if version != Call.of_word(self._word).version or not self._is_current():
            return None
        try:
            values = self._reduce.result()
        except ReduceBroken:
            return None  # the learner's side reports it
        if values is None:
            return None
        sum_P = values[: self._num_parameters].astype(np.float32)
        return Total(sum_P, [round(count) for count in values[self._num_parameters :].tolist()])


class OwnPolicy:
    """A BoardReader with parameters of its own."""

    def __init__(
        self,
        model: nn.Module,
        update: Update,
        board: BoardReader,
        totals: Totals,
        weigh: Callable[[int], tuple[float, float]],
        gauges: memoryview[int],
    ) -> None:
        """model: owned by this object, because the actor moves its own to the look-ahead point.
        weigh: the gather rule's."""
        self._update = update
        self._board = board
        self._totals = totals
        self._weigh = weigh
        self._gauges = gauges
        self._whole = WholeSnapshot(model, update)
        self._policy = Snapshot(model)
        self._bytes: Bytes = np.zeros(self._policy.nbytes, np.uint8)
        self._version = -1

    def version(self) -> int:
        """Return the latest version available here; while a total is on its way, the last one."""
        return self._version if self._totals.is_under_way() else self._board.version()

    def latest(self, read: Callable[[Bytes], None]) -> int:
        self._catch_up()
        self._policy.write_to(self._bytes)
        read(self._bytes)
        return self._version

    def _catch_up(self) -> None:
        newest = self._board.version()
        if newest == self._version:
            return
        total = self._totals.total(self._version) if newest == self._version + 1 else None
        if total is None:
            self._version = self._board.latest(self._whole.read_from)
            return
        self._step(total)
        self._version = newest

    def _step(self, total: Total) -> None:
        weight = sum(self._weigh(count)[1] for count in total.counts if count)
        arrays = {"sum": total.sum_P, "weight": np.array([weight])}
        batch = Batch(arrays, (), sum(total.counts), 0)
        for minibatch in self._update.minibatches(batch, progress=0.0):
            minibatch.gradient()
            minibatch.step()
            self._gauges[Gauge.UPDATES] += 1
