"""Buffer: keeps what arrives until the learner may have it, and grants actors their slots.

Takes      unrolls (Stream), from all actors
Gives      batches to the learner, grants to the actors
Waits for  nothing; a tick that finds nothing says so
Unblocked  by an arrival, or by a version that the learner finished
Stops      between two ticks
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tianji.balance.set_point import SetPoint
from tianji.buffer.episodes import Episodes
from tianji.buffer.grants import Grants
from tianji.buffer.interface import Progress, Store
from tianji.buffer.lag import LagGauge
from tianji.buffer.late import LateUnrolls
from tianji.channels.gauges import Gauge
from tianji.channels.interface import Receiver
from tianji.types import Batch, Clock, Stamp


@dataclass(frozen=True, slots=True)
class BufferPlan:
    """What the buffer is told."""

    point: SetPoint
    max_lag: int
    first_row: int
    """Rows before it repeat the unroll before."""
    may_park: bool = False
    """There are more workers than cores, so that actors disturb the learner."""


WAKE_PERIOD_NS = 10_000_000
"""While the learner waits, more actors are woken this often."""


class Buffer:
    """Arrivals wait in `_waiting` until a version is due; then they enter the store by age and in
    (round, actor) order, so that the order of arrival never matters."""

    def __init__(
        self,
        plan: BufferPlan,
        receiver: Receiver,
        store: Store,
        progress: Progress,
        gauges: memoryview[int],
        actor_gauges: Sequence[memoryview[int]],
        now_ns: Clock = time.monotonic_ns,
    ) -> None:
        self._plan = plan
        self._receiver = receiver
        self._store = store
        self._episodes = Episodes(receiver, progress, plan.first_row)
        self._gauges = gauges
        self._actor_gauges = actor_gauges
        self._grants = Grants(plan.point, plan.may_park, receiver, gauges, actor_gauges)
        self._now_ns = now_ns
        self._waiting: list[tuple[Stamp, int]] = []
        self._put = self._put_before()
        self._versions_made = 0
        """Since the start or the resume, as `_put`."""
        self._version = 0
        self._is_taken = False
        self._late = LateUnrolls(plan.max_lag, actor_gauges, now_ns)
        self._late_since_ns = 0
        """When the version that is due began to wait for them; 0: it does not."""
        self._woken_ns = 0
        self._has_changed = True
        """Since permissions were last dealt out."""
        self.lag = LagGauge()
        self.items_put = 0
        """Items put, warm-up not counted: what items_taken stands in the serial ratio to."""
        self.items_taken = 0
        self._discarded_before = 0

    def tick(self) -> bool:
        """Receive what has arrived, carry out lane resets, grant what the balance allows."""
        worked = self._reset_lanes()
        worked |= self._receive_all()
        if self._grants.look_around() or self._has_changed:
            self._deal()
        return worked

    def _deal(self) -> None:
        self._has_changed = False
        self._grants.deal(self._plan.point.allowed(self._versions_made) - self._started())
        self._receiver.expect(max(1, self._due() - self._kept()))

    def _kept(self) -> int:
        return self._put + len(self._waiting)

    def _started(self) -> int:
        return self._kept() + self._grants.num_outstanding

    def _receive_all(self) -> bool:
        before = len(self._waiting)
        while (slot := self._receiver.take()) is not None:
            self._receive(slot)
        return len(self._waiting) > before

    def _receive(self, slot: int) -> None:
        stamp = self._receiver.stamp(slot)
        self._has_changed = True
        if not self._grants.turns.arrived(stamp.actor, stamp.round):
            self._discard(slot)  # its lane was declared lost, and the round is made again
            return
        self._waiting.append((stamp, slot))
        self._gauges[Gauge.ITEMS] += 1
        self._gauges[Gauge.RECEIVED_STEPS] += stamp.env_steps

    def _reset_lanes(self) -> bool:
        """Actors that were replaced: each one's lane starts afresh."""
        replaced = self._grants.presence.replaced()
        for actor, resets in replaced:
            for slot in self._receiver.reset_lane(actor):
                self._receive(slot)
            self._late.forget(actor)
            self._grants.lost(actor, resets)
            self._has_changed = True
        return bool(replaced)

    def take(self) -> Batch | None:
        """A batch for the next version, when one is due."""
        if self._is_taken:
            return None
        if self._kept() < self._due():
            self._wake_more()
            return None
        if self._waits_for_late():
            return None
        self._receive_all()  # what is no longer in work has been sent
        self._discard_late()
        count = self._due() - self._put
        if len(self._waiting) < count:
            return None
        self._waiting.sort(key=_turn)
        entering, self._waiting = self._waiting[:count], self._waiting[count:]
        self._enter(entering)
        self._is_taken = True
        batch = self._store.take(self._version)
        self.items_taken += batch.num_items
        return batch

    def _due(self) -> int:
        """Unrolls that the next version needs, since the start or the resume."""
        return self._plan.point.due(self._versions_made)

    def _wake_more(self) -> None:
        """The learner has nothing to do: parked actors are woken, more and more of them."""
        if self._grants.is_parking():
            now_ns = self._now_ns()
            if now_ns - self._woken_ns >= WAKE_PERIOD_NS:
                self._woken_ns = now_ns
                self._grants.wake_more()
                self._deal()

    def _waits_for_late(self) -> bool:
        waits = self._late.holds_up(self._version, self._grants.round_in_work)
        if waits and not self._late_since_ns:
            self._late_since_ns = self._now_ns()
        elif self._late_since_ns and not waits:
            self._gauges[Gauge.LATE_NS] += self._now_ns() - self._late_since_ns
            self._late_since_ns = 0
        return waits

    def _enter(self, entering: list[tuple[Stamp, int]]) -> None:
        warmup = max(0, self._plan.point.warmup_unrolls - self._put)
        for number, (stamp, slot) in enumerate(entering):
            self.lag.add(self._version - stamp.oldest_version)
            self._episodes.add(stamp, slot)
            items = self._store.put(slot, stamp)
            if number >= warmup:
                self.items_put += items
        self._episodes.tell()
        self._put += len(entering)

    def _discard_late(self) -> None:
        """The last resort: what is older than the bound in spite of pacing is given up, counted."""
        in_time, is_any = [], False
        for stamp, slot in self._waiting:
            if self._version - stamp.oldest_version > self._plan.max_lag:
                self._discard(slot)
                is_any = True
            else:
                in_time.append((stamp, slot))
        self._waiting = in_time
        if is_any:
            self._deal()

    def _discard(self, slot: int) -> None:
        self._receiver.release(slot)
        self._gauges[Gauge.DISCARDED] += 1

    def finish(self, batch: Batch, version: int) -> int:
        """The learner published `version` from this batch: the balance may move on."""
        unique_steps = self._store.finish(batch)
        is_ahead = self._kept() == self._plan.point.allowed(self._versions_made)
        self._version = version
        self._versions_made += 1
        self._is_taken = False
        self._grants.after_version(is_ahead)
        self._deal()
        return unique_steps

    def continue_at(self, version: int) -> None:
        """The learner goes on at this version, after a resume."""
        self._version = version

    @property
    def due_ns(self) -> int:
        return 0  # only arrivals and versions make something happen here

    def news(self) -> list[str]:
        return []

    def metrics(self) -> dict[str, float]:
        return self._store.metrics()

    def record(self) -> dict[str, Any]:
        return {}

    @property
    def discarded(self) -> int:
        """Unrolls given up: too late here, or abandoned by an actor when the learner was reborn."""
        return self._discarded_before + self._discarded_now()

    def _discarded_now(self) -> int:
        return sum(row[Gauge.DISCARDED] for row in (self._gauges, *self._actor_gauges))

    def state(self) -> dict[str, Any]:
        """Between two versions. Unrolls that wait or are being made are made again on resume."""
        turns = self._grants.turns
        in_flight = list(turns.outstanding)
        for stamp, _ in self._waiting:
            in_flight[stamp.actor] += 1
        return {
            "rounds": [made - lost for made, lost in zip(turns.rounds, in_flight, strict=True)],
            "items_put": self.items_put,
            "discarded": self.discarded,
            "items_taken": self.items_taken,
            "store": self._store.state(),
            "lag": self.lag.state(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        self._grants.turns.load(state["rounds"])
        self.items_put = int(state["items_put"])
        # A learner that is restarted finds the gauges as they were; they count only once.
        self._discarded_before = int(state["discarded"]) - self._discarded_now()
        self.items_taken = int(state["items_taken"])
        self._store.load_state(state["store"])
        self.lag.load_state(state["lag"])
        self._put = self._put_before()
        self._has_changed = True

    def _put_before(self) -> int:
        """What the store came back with: a full one needs no second warm-up."""
        return min(self._store.num_held(), self._plan.point.warmup_unrolls)


def _turn(entry: tuple[Stamp, int]) -> tuple[int, int, int]:
    """The oldest first, so that nothing waits until it is too old; without lag all are of one age,
    and the order is (round, actor)."""
    stamp, _ = entry
    return stamp.oldest_version, stamp.round, stamp.actor
