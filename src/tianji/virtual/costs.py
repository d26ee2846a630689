"""What a tick of the learner's worker takes, from what whole versions take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tianji.channels.gauges import Gauge
from tianji.costs.profile import Profile
from tianji.costs.work import Work, learner_cost, to_work


@dataclass(frozen=True, slots=True)
class LearnerParts:
    """A version in parts, so that the buffer may look between two updates, as it really does."""

    receive_s: float
    """One unroll."""
    update_s: float
    """One optimiser step, with its share of making up the batch."""
    publish_s: float
    num_updates: int
    """Of one version."""
    cores: float = 1.0
    strain: float = 1.0
    exchange_s: float = 0.0
    """Of every update: waiting for the other groups' gradients."""

    def work(self, num_received: int, num_updates: int, num_published: int) -> Work:
        """Of one tick."""
        busy_s = (
            num_received * self.receive_s
            + num_updates * self.update_s
            + num_published * self.publish_s
        )
        waits_s = num_updates * self.exchange_s
        return Work(busy_s + waits_s, busy_s * self.cores, self.strain)


def learner_parts(profile: Profile, threads: int, unrolls_per_version: float) -> LearnerParts:
    """The measured version: what neither receives nor publishes is shared by the updates. The
    number of updates follows from the duration of one."""
    cost = learner_cost(profile, threads)
    version = to_work(cost.version)
    receiving_s = unrolls_per_version * cost.receive_s
    updating_s = version.alone_s - receiving_s - cost.publish_s
    if updating_s <= 0:  # noise: parts cannot take longer than the whole
        updating_s = version.alone_s / 2
    num_updates = max(1, round(updating_s / cost.update_s)) if cost.update_s > 0 else 1
    return LearnerParts(
        receive_s=cost.receive_s,
        update_s=updating_s / num_updates,
        publish_s=cost.publish_s,
        num_updates=num_updates,
        cores=version.cores,
        strain=version.strain,
    )


class LearnerJob:
    """Ticks the learner's worker and reads off its gauges what that was."""

    def __init__(
        self,
        tick: Callable[[], bool],
        parts: LearnerParts,
        buffer: memoryview[int],
        learner: memoryview[int],
    ) -> None:
        self._tick = tick
        self._parts = parts
        self._buffer = buffer
        self._learner = learner
        self._receiving = self._publishing = 0.0
        """Shares of the last tick."""

    def tick(self) -> Work | None:
        received, updates = self._buffer[Gauge.ITEMS], self._learner[Gauge.UPDATES]
        version = self._learner[Gauge.VERSION]
        if not self._tick():
            return None
        parts = self._parts
        num_received = self._buffer[Gauge.ITEMS] - received
        num_published = self._learner[Gauge.VERSION] - version
        work = parts.work(num_received, self._learner[Gauge.UPDATES] - updates, num_published)
        whole_s = work.alone_s or 1.0
        self._receiving = num_received * parts.receive_s / whole_s
        self._publishing = num_published * parts.publish_s / whole_s
        return work

    def spend(self, took_ns: int) -> None:
        receiving_ns = round(self._receiving * took_ns)
        self._buffer[Gauge.BUSY_NS] += receiving_ns
        self._learner[Gauge.BUSY_NS] += took_ns - receiving_ns
        self._learner[Gauge.PUBLISH_NS] += round(self._publishing * took_ns)
