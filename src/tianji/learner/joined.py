"""A learner whose gradients are added to those of other groups: all make the same updates.

Takes      batches, one per version and group
Gives      the policy (Board), one version per batch, the same in all groups
Waits for  the other learners, in every update; before a batch, for a group whose state is too old
Unblocked  by their coming (learner/meeting.py); by a post of that group
Stops      between two versions, with all others; a version in work is cut short by all or by none
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from tianji.algorithms.interface import Update
from tianji.channels.gauges import Activity, Gauge
from tianji.channels.interface import Batches, BoardWriter, Bytes
from tianji.learner.meeting import Meeting
from tianji.learner.role import Learner
from tianji.records import StoppedBecause
from tianji.types import Batch, Clock

if TYPE_CHECKING:  # it loads torch, and simulations do without
    from tianji.learner.combination import Combination
    from tianji.learner.shared_mix import SharedMix


class JoinedLearner(Learner):
    """`tick` is one optimiser step with the sum of all gradients, or the publication of a version.

    The update must have joined the peers of the meeting."""

    def __init__(
        self,
        meeting: Meeting,
        update: Update,
        batches: Batches,
        policy: BoardWriter,
        write_policy: Callable[[Bytes], None],
        gauges: memoryview[int],
        now_ns: Clock = time.monotonic_ns,
        mixing: SharedMix | None = None,
        combination: Combination | None = None,
    ) -> None:
        """mixing: mixes this learner's group with others. combination: the part of it that the
        first learner of the group has."""
        progress = meeting.progress
        super().__init__(
            update, batches, policy, write_policy, progress, gauges, now_ns, combination
        )
        self.meeting = meeting
        self._mixing = mixing
        self._waiting: Batch | None = None
        """A batch that waits until the other learners have theirs."""

    def tick(self) -> bool:
        if self._batch is None and not self._begin():
            return self.waits_for_others
        if self._mixing is not None and self._mixing.is_due:
            self._mixing.mix(self.version)
            return True
        if self.meeting.cuts_short():
            self._minibatches = iter(())
        minibatch = next(self._minibatches, None)
        if minibatch is None:
            self._finish()
            return True
        self.meeting.peers.add(minibatch.gradient())
        minibatch.step()
        self._gauges[Gauge.UPDATES] += 1
        self._gauges[Gauge.STEPS] += minibatch.num_steps
        if self._mixing is not None:
            self._mixing.after_update()
        return True

    def share(self) -> None:
        """Take over the parameters of the first learner of the group, which may have taken those of
        other groups."""
        if self._mixing is not None:
            self._mixing.share()

    @property
    def waits_for_others(self) -> bool:
        """True while it has a batch, and another learner has none yet."""
        return self._waiting is not None

    def cut_short(self) -> None:
        """Leave out, with all others, the updates that are left of the version in work: soon."""
        self.meeting.wants_to_cut_short = True

    def end_together(self, because: StoppedBecause) -> StoppedBecause | None:
        """Tell the other learners that this one ends the run, unless they have ended it already.
        Return why all of them do."""
        if self.meeting.agreed.because is None:
            self._meet(because)
        return self.meeting.agreed.because

    def _begin(self) -> bool:
        """Begin a version if all learners have a batch. Else this one's waits."""
        batch = self._waiting = self._waiting or self._take()
        self._gauges[Gauge.ACTIVITY] = Activity.WAITING
        if not self.meeting.is_due(batch is not None):
            return False
        self._meet(None)
        if batch is None or not self.meeting.agreed.begins:
            return False
        self._waiting = None
        self._gauges[Gauge.ACTIVITY] = Activity.UPDATING
        self._batch = batch
        self._minibatches = self._update.minibatches(batch, self._progress())
        return True

    def _meet(self, because: StoppedBecause | None) -> None:
        updates, is_ready = self._gauges[Gauge.UPDATES], self._waiting is not None
        self.meeting.come(updates, is_ready, because)
