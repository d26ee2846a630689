"""OwnPolicy: the policy of an actor that takes the learner's steps itself, in an all-reduce.

The actor uses it like the board with the policy. From the real board it needs only the version,
which shows that the learner has taken the step too. It reads the parameters from the board only
when it has missed a step: at its start, without a total, or after the learner was restored.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from torch import nn

from tianji.algorithms.interface import Update
from tianji.algorithms.whole import WholeSnapshot
from tianji.channels.gauges import Gauge
from tianji.channels.interface import BoardReader, Bytes, Total, Totals
from tianji.models.flat import Snapshot
from tianji.types import Batch


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
