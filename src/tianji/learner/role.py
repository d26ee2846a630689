"""Learner: turns batches into policy versions.

Takes      batches, one per version
Gives      the policy (Board), one version per batch
Waits for  nothing: a tick that finds no batch says so; it takes none while the state of another
           group is too old
Unblocked  by the buffer, when a version is due; by a post of that group
Stops      between two optimiser steps; a version in work is published only where it is cut short
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from tianji.algorithms.interface import Minibatch, Update
from tianji.channels.gauges import Activity, Gauge
from tianji.channels.interface import Batches, BoardWriter, Bytes
from tianji.devices.waits import WAITS
from tianji.types import Array, Batch, Clock

if TYPE_CHECKING:  # it loads torch, and simulations do without
    from tianji.learner.combination import Combination


LOOK_NS = 1_000_000
"""Boards ring no bell: a learner that waits for another group looks again after this time."""


class Learner:
    """`tick` is one optimiser step, a mix with other groups, or the publication of a version."""

    def __init__(
        self,
        update: Update,
        batches: Batches,
        policy: BoardWriter,
        write_policy: Callable[[Bytes], None],
        progress: Callable[[], float],
        gauges: memoryview[int],
        now_ns: Clock = time.monotonic_ns,
        combination: Combination | None = None,
    ) -> None:
        """combination: mixes the parameters with those of other groups."""
        self._update = update
        self._batches = batches
        self._policy = policy
        self._write_policy = write_policy
        self._progress = progress
        self._gauges = gauges
        self._now_ns = now_ns
        self.combination = combination
        self._priorities: Callable[[], Array | None] = getattr(update, "priorities", lambda: None)
        self._batch: Batch | None = None
        self._minibatches: Iterator[Minibatch] = iter(())
        self._minibatch_steps = 0
        self._held_ns = 0
        """When it looked last while it waited for another group."""
        self.version = 0
        self.metrics: Mapping[str, float] = {}
        """Figures of the last batch."""

    def publish(self) -> None:
        """Post the policy as the current version; the first one starts the actors."""
        self._gauges[Gauge.ACTIVITY] = Activity.PUBLISHING
        before_ns = self._now_ns() - WAITS.earlier_ns
        self._policy.post(self.version, self._write_policy)
        # On a GPU the updates are still under way: their time is not that of publishing.
        self._gauges[Gauge.PUBLISH_NS] += max(0, self._now_ns() - WAITS.earlier_ns - before_ns)
        self._gauges[Gauge.VERSION] = self.version
        self._gauges[Gauge.GPU_WAITS] = WAITS.count
        self._gauges[Gauge.UPLOADED_BYTES] = WAITS.uploaded_bytes

    def tick(self) -> bool:
        if self._batch is None and not self._begin():
            return False
        if self.combination is not None and self.combination.is_due:
            self.combination.mix(self.version)
            return True
        minibatch = next(self._minibatches, None)
        if minibatch is None:
            self._finish()
            return True
        minibatch.gradient()
        minibatch.step()
        self._gauges[Gauge.UPDATES] += 1
        self._gauges[Gauge.STEPS] += self._minibatch_steps
        if self.combination is not None:
            self.combination.after_update()
        return True

    def cut_short(self) -> None:
        """Leave out the updates that are left of the version in work: the next tick publishes it.

        Every tick was a whole optimiser step, so that the model is sound after any of them."""
        self._minibatches = iter(())

    @property
    def is_between_versions(self) -> bool:
        return self._batch is None

    @property
    def waits_for_peers(self) -> bool:
        """True while it takes no batch because it waits for another group."""
        return self.combination is not None and self.combination.is_waiting

    @property
    def due_ns(self) -> int:
        """Time to look again at what it waits for; 0: a bell wakes it."""
        return self._now_ns() + LOOK_NS if self.waits_for_peers else 0

    def _take(self) -> Batch | None:
        """Return the next batch, if there is one and no other group must be waited for."""
        return None if self._is_held_back() else self._batches.take()

    def _is_held_back(self) -> bool:
        """Return whether to wait for another group, and count the time."""
        if self.combination is None:
            return False
        was_waiting, is_waiting = self.waits_for_peers, self.combination.hold_back()
        if was_waiting or is_waiting:
            now_ns = self._now_ns()
            if was_waiting:
                self._gauges[Gauge.PEER_NS] += now_ns - self._held_ns
            self._held_ns = now_ns
        return is_waiting

    def _begin(self) -> bool:
        batch = self._take()
        if batch is None:
            self._gauges[Gauge.ACTIVITY] = Activity.WAITING
            return False
        self._gauges[Gauge.ACTIVITY] = Activity.UPDATING
        self._batch = batch
        self._minibatches = self._update.minibatches(batch, self._progress())
        self._minibatch_steps = self._update.minibatch_steps(batch)
        return True

    def _finish(self) -> None:
        assert self._batch is not None
        self.version += 1
        self.publish()
        # After it: on a GPU the figures have come with the policy.
        self.metrics = self._update.metrics() or self.metrics
        batch, self._batch = self._batch, None
        self._gauges[Gauge.UNIQUE_STEPS] += batch.unique_steps
        self._batches.finish(batch, self.version, self._priorities())
