"""Simulated learners that add up their gradients: each waits until the last one has come.

As in a run with `combine: gradients`, learners meet before each version, when all have a batch, and
in each of its updates.
"""

from __future__ import annotations

from tianji.channels.interface import Batches
from tianji.types import Array, Batch
from tianji.virtual.clock import VirtualClock
from tianji.virtual.node import Worker


class Meeting:
    """The learners that are simulated; those of other machines are like them and come with them."""

    def __init__(self, clock: VirtualClock, num_members: int) -> None:
        self._clock = clock
        self._num_members = num_members
        self._came: list[Member] = []

    def member(self) -> Member:
        return Member(self, self._clock)

    def arrive(self, member: Member, takes_ns: int) -> None:
        """Let all members go on when the last one has come, after the time of the reduction."""
        self._came.append(member)
        if len(self._came) == self._num_members:
            came, self._came = self._came, []
            self._clock.after(takes_ns, lambda: _release(came))


def _release(members: list[Member]) -> None:
    for member in members:
        member.go_on()


class Member:
    """One learner's place in the meeting.

    is_waiting: it has come, or is about to come, and may not go on.
    waited_ns: time from coming to going on, over all meetings.
    """

    def __init__(self, meeting: Meeting, clock: VirtualClock) -> None:
        self._meeting = meeting
        self._clock = clock
        self._since_ns = 0
        self.worker: Worker
        self.is_waiting = False
        self.waited_ns = 0

    def come(self, takes_s: float) -> None:
        """Wait for the others from the end of this tick on; the reduction takes this long."""
        self.is_waiting = True
        self.worker.later(lambda: self._arrive(takes_s))

    def _arrive(self, takes_s: float) -> None:
        self._since_ns = self._clock.now_ns()
        self._meeting.arrive(self, round(takes_s * 1e9))

    def go_on(self) -> None:
        self.is_waiting = False
        self.waited_ns += self._clock.now_ns() - self._since_ns
        self.worker.wake()


class AgreedBatches:
    """Hands a batch to its learner when the learners of all groups have one."""

    def __init__(self, batches: Batches, member: Member, takes_s: float) -> None:
        self._batches = batches
        self._member = member
        self._takes_s = takes_s
        self._held: Batch | None = None

    def take(self) -> Batch | None:
        if self._held is None:
            self._held = self._batches.take()
            if self._held is not None:
                self._member.come(self._takes_s)
            return None
        batch, self._held = self._held, None
        return batch

    def finish(self, batch: Batch, version: int, priorities: Array | None = None) -> None:
        self._batches.finish(batch, version, priorities)


class Agreement:
    """One learner's side: when it meets the others, and how long the reductions take."""

    def __init__(self, member: Member, version_s: float, update_s: float) -> None:
        """version_s, update_s: time of the reductions before a version, and in each update."""
        self.member = member
        self._version_s = version_s
        self._update_s = update_s

    def batches(self, batches: Batches) -> AgreedBatches:
        return AgreedBatches(batches, self.member, self._version_s)

    def after_update(self) -> None:
        self.member.come(self._update_s)
