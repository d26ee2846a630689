"""Learner: turns batches into policy versions.

Takes      batches, one per version
Gives      the policy (Board), one version per batch
Waits for  nothing; a tick that finds no batch says so. Where several learners make one update, for
           the others (learner/meeting.py)
Unblocked  by the buffer, when a version is due
Stops      between two optimiser steps; a version in work is published only where it is cut short
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

from tianji.algorithms.interface import Minibatch, Update
from tianji.channels.gauges import Activity, Gauge
from tianji.channels.interface import Batches, BoardWriter, Bytes
from tianji.devices.waits import WAITS
from tianji.learner.meeting import Meeting
from tianji.records import StoppedBecause
from tianji.types import Array, Batch, Clock


class Learner:
    """`tick` is one optimiser step, or the publication of a version."""

    def __init__(
        self,
        update: Update,
        batches: Batches,
        policy: BoardWriter,
        write_policy: Callable[[Bytes], None],
        progress: Callable[[], float],
        gauges: memoryview[int],
        now_ns: Clock = time.monotonic_ns,
        meeting: Meeting | None = None,
    ) -> None:
        """meeting: with the learners of other groups, whose gradients are added to its own. The
        update must have joined the same peers."""
        self._update = update
        self._batches = batches
        self._policy = policy
        self._write_policy = write_policy
        self._progress = progress
        self._gauges = gauges
        self._now_ns = now_ns
        self._priorities: Callable[[], Array | None] = getattr(update, "priorities", lambda: None)
        self.meeting = meeting
        self._taken: Batch | None = None
        """A batch that waits until the other learners have theirs."""
        self._batch: Batch | None = None
        self._minibatches: Iterator[Minibatch] = iter(())
        self._minibatch_steps = 0
        self.version = 0
        self.metrics: Mapping[str, float] = {}
        """Figures of the last batch."""

    def publish(self) -> None:
        """Post the policy as the current version; the first one starts the actors."""
        self._gauges[Gauge.ACTIVITY] = Activity.PUBLISHING
        before_ns, earlier_ns = self._now_ns(), WAITS.earlier_ns
        self._policy.post(self.version, self._write_policy)
        # On a GPU the updates are still under way: their time is not that of publishing.
        updating_ns = WAITS.earlier_ns - earlier_ns
        self._gauges[Gauge.PUBLISH_NS] += max(0, self._now_ns() - before_ns - updating_ns)
        self._gauges[Gauge.VERSION] = self.version
        self._gauges[Gauge.GPU_WAITS] = WAITS.count
        self._gauges[Gauge.UPLOADED_BYTES] = WAITS.uploaded_bytes

    def tick(self) -> bool:
        if self._batch is None and not self._begin():
            return self.waits_for_others
        if self.meeting is not None:
            return self._tick_with(self.meeting)
        minibatch = next(self._minibatches, None)
        if minibatch is None:
            self._finish()
            return True
        minibatch.gradient()
        minibatch.step()
        self._gauges[Gauge.UPDATES] += 1
        self._gauges[Gauge.STEPS] += self._minibatch_steps
        return True

    def _tick_with(self, meeting: Meeting) -> bool:
        """Make the update that all learners make, or publish."""
        if meeting.cuts_short():
            self._minibatches = iter(())
        minibatch = next(self._minibatches, None)
        if minibatch is None:
            self._finish()
            return True
        meeting.peers.add(minibatch.gradient())
        minibatch.step()
        self._gauges[Gauge.UPDATES] += 1
        self._gauges[Gauge.STEPS] += minibatch.num_steps
        return True

    def cut_short(self) -> None:
        """Leave out the updates that are left of the version in work: the next tick publishes it.

        Every tick was a whole optimiser step, so that the model is sound after any of them. Several
        learners do so together, at their next look."""
        if self.meeting is not None:
            self.meeting.wants_to_cut_short = True
        else:
            self._minibatches = iter(())

    def end_together(self, because: StoppedBecause) -> None:
        """Tell the other learners that this one ends the run: they end it too."""
        if self.meeting is not None:
            updates, progress = self._gauges[Gauge.UPDATES], self._progress()
            self.meeting.come(updates, progress, self._taken is not None, because)

    @property
    def is_between_versions(self) -> bool:
        return self._batch is None

    @property
    def waits_for_others(self) -> bool:
        """True while it has a batch, and other learners have none yet."""
        return self._taken is not None

    def _begin(self) -> bool:
        batch = self._taken or self._batches.take()
        if self.meeting is not None and not self._meet(self.meeting, batch):
            return False
        if batch is None:
            self._gauges[Gauge.ACTIVITY] = Activity.WAITING
            return False
        self._gauges[Gauge.ACTIVITY] = Activity.UPDATING
        self._batch = batch
        progress = self._progress() if self.meeting is None else self.meeting.agreed.progress
        self._minibatches = self._update.minibatches(batch, progress)
        self._minibatch_steps = self._update.minibatch_steps(batch)
        return True

    def _meet(self, meeting: Meeting, batch: Batch | None) -> bool:
        """Return whether all learners begin a version now. Else the batch waits."""
        self._taken = batch
        self._gauges[Gauge.ACTIVITY] = Activity.WAITING
        if not meeting.is_due(batch is not None):
            return False
        updates = self._gauges[Gauge.UPDATES]
        if not meeting.come(updates, self._progress(), batch is not None).begins:
            return False
        self._taken = None
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
