"""The ratio window: a batch may be taken when enough items arrived, and actors may start as many
as keep the lag at its set-point.

Arrivals wait until a version is due; then they enter the store by age and in (round, actor) order,
so that the order of arrival never matters.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tianji.balance.lead import Lead, lead_unrolls
from tianji.balance.set_point import SetPoint
from tianji.balance.turns import ParkingState, Turns, after_version, after_wait
from tianji.buffer.interface import Entry, Gate, by_age
from tianji.buffer.lanes import Lanes
from tianji.buffer.orders import BufferOrders
from tianji.buffer.warmup import WarmUp
from tianji.channels.gauges import Gauge
from tianji.channels.interface import Receiver
from tianji.channels.orders import ActorRows, BufferRows
from tianji.types import Clock, Stamp

WAKE_PERIOD_NS = 10_000_000
"""While the learner waits, more actors are woken this often."""


@dataclass(frozen=True, slots=True)
class WindowPlan:
    """WindowPlan(SetPoint(unrolls_per_version=2, warmup_unrolls=0, lag_target=1), max_lag=1)"""

    point: SetPoint
    max_lag: int
    may_park: bool = False
    """True where there are more workers than cores: actors then disturb the learner."""
    stores_copies: bool = False
    """The store copies what it keeps, so that unrolls of the warm-up, and those that are stored
    ahead, enter it when they arrive."""


class RatioWindow(Gate):
    """Keeps production and consumption in the serial ratio."""

    def __init__(
        self,
        plan: WindowPlan,
        receiver: Receiver,
        rows: BufferRows,
        now_ns: Clock = time.monotonic_ns,
    ) -> None:
        num_actors = receiver.num_lanes
        is_serial = plan.point.lag_target == 0
        at_once = max(1, plan.point.unrolls_per_version // num_actors)
        self.lanes = Lanes(receiver, Turns(num_actors, is_serial, at_once), rows)
        self._point = plan.point
        self._max_lag = plan.max_lag
        self._gauges = rows.gauges
        self._now_ns = now_ns
        self._waiting: list[Entry] = []
        self._entered: list[Entry] = []
        """What has entered the store ahead of its version and no batch has counted yet."""
        self._num_entered = 0
        self._versions_made = 0
        """Counted from the start or the resume, like `_num_entered`."""
        self.version = 0
        self._late = LateUnrolls(plan.max_lag, rows.actors, now_ns)
        self._late_since_ns = 0
        """Time at which the version that is due began to wait for late unrolls; 0: it does not."""
        self._warmup = WarmUp(plan.point, num_actors) if plan.stores_copies else None
        most_ahead = lead_unrolls(plan.point, plan.max_lag) if plan.stores_copies else 0
        self._lead = Lead(most_ahead)
        self._ahead_before = 0
        """Unrolls that were stored ahead when the run was saved."""
        self._may_park = plan.may_park and not is_serial and num_actors > 1
        self._parking = ParkingState(num_actors, num_actors)
        self._woken_ns = 0
        self._gauges[Gauge.ACTIVE] = num_actors

    def starts_with(self, num_held: int) -> None:
        """Skip the part of the warm-up that the store makes up for."""
        warmup = self._point.warmup_unrolls
        self._num_entered = min(num_held, warmup + self._ahead_before)
        if self._warmup is not None:
            self._warmup.starts_with(min(num_held, warmup))

    def arrived(self, stamp: Stamp, slot: int) -> bool:
        enters = self._warmup is not None and self._warmup.takes(stamp.actor)
        if not enters and self._lead.num_unrolls and stamp.oldest_version >= self._oldest():
            self._entered.append(Entry(stamp, None, self.version))
            self._num_entered += 1
            return True
        self._waiting.append(Entry(stamp, None if enters else slot))
        return enters

    def _oldest(self) -> int:
        """Return the oldest version of an unroll that is not too late."""
        return self.version - self._max_lag

    def gave_up(self, actor: int) -> None:
        """Let the other actors take its turns."""
        if self._warmup is not None:
            self._warmup.gave_up()

    def came(self, actor: int) -> None:
        self._late.came(actor)

    def lost(self, actor: int) -> None:
        self._late.forget(actor)
        self.lanes.lost(actor)

    def tick(self) -> bool:
        if self.lanes.has_changed:
            self._deal()
        return False

    def _deal(self) -> None:
        lanes = self.lanes
        lanes.has_changed = False
        budget = self._allowed() - self._started()
        if self._warmup is not None and (self._versions_made == 0 or self._lead.num_unrolls):
            in_slots = sum(entry.slot is not None for entry in self._waiting)
            room = self._warmup.most_in_slots - in_slots - lanes.turns.num_outstanding
            budget = min(budget, room)
        lanes.deal(budget)
        lanes.deliver()
        lanes.receiver.expect(max(1, self._needed() - self._kept()))

    def _allowed(self) -> int:
        return self._point.allowed(self._versions_made) + self._lead.num_unrolls

    def _kept(self) -> int:
        return self._num_entered + len(self._waiting)

    def _started(self) -> int:
        return self._kept() + self.lanes.turns.num_outstanding

    def _needed(self) -> int:
        """Return how many unrolls the next version needs, since the start or the resume."""
        return self._point.due(self._versions_made)

    def may_take(self) -> bool:
        if self._kept() < self._needed():
            self._lead.learner_waits()
            self._wake_more()
            return False
        return not self._waits_for_late()

    def _wake_more(self) -> None:
        """Wake more and more parked actors while the learner has nothing to do."""
        if self._parking.active < self._parking.num_actors:
            now_ns = self._now_ns()
            if now_ns - self._woken_ns >= WAKE_PERIOD_NS:
                self._woken_ns = now_ns
                self._park(after_wait(self._parking))
                self._deal()

    def _park(self, state: ParkingState) -> None:
        self._parking = state
        if state.active != self.lanes.turns.active:
            self.lanes.turns.active = self._gauges[Gauge.ACTIVE] = state.active

    def _waits_for_late(self) -> bool:
        waits = self._late.holds_up(self.version, self.lanes.round_in_work)
        if waits and not self._late_since_ns:
            self._late_since_ns = self._now_ns()
        elif self._late_since_ns and not waits:
            self._gauges[Gauge.LATE_NS] += self._now_ns() - self._late_since_ns
            self._late_since_ns = 0
        return waits

    def entering(self) -> list[Entry] | None:
        self._discard_late()
        missing = max(0, self._needed() - self._num_entered)
        if len(self._waiting) < missing:
            return None
        count = len(self._waiting) if self._lead.num_unrolls else missing
        self._waiting.sort(key=by_age)
        entering, self._waiting = self._entered + self._waiting[:count], self._waiting[count:]
        self._entered = []
        self._num_entered += count
        return entering

    def _discard_late(self) -> None:
        """Discard and count unrolls that are too old in spite of pacing, as a last resort."""
        oldest = self._oldest()
        late = [
            entry
            for entry in self._waiting
            if entry.slot is not None and entry.stamp.oldest_version < oldest
        ]
        if not late:
            return
        self._waiting = [entry for entry in self._waiting if entry not in late]
        for stamp, slot, _ in late:
            assert slot is not None, "those that entered the store are not discarded"
            self.lanes.discard(stamp, slot)
        self._deal()

    def finish(self, version: int) -> None:
        kept = self._kept()
        if self._may_park:
            self._park(after_version(self._parking, is_ahead=kept >= self._allowed()))
        self._lead.version_made(is_ahead=kept >= self._point.allowed(self._versions_made))
        self.version = version
        self._versions_made += 1
        self._deal()

    def continue_at(self, version: int, is_first: bool) -> None:
        self.version = version

    def waiting(self) -> Iterable[Stamp]:
        return (entry.stamp for entry in self._waiting if entry.slot is not None)

    def state(self) -> dict[str, Any]:
        return {"ahead": max(0, self._num_entered - self._point.due(self._versions_made - 1))}

    def load_state(self, state: dict[str, Any]) -> None:
        self._ahead_before = int(state.get("ahead", 0))  # older checkpoints have none


PATIENCE_NS = 250_000_000

RoundInWork: TypeAlias = Callable[[int], int | None]
"""Returns the round that an actor is on; None when it holds no grant."""


class LateUnrolls:
    """Unrolls in work that would be too old after the next version.

    The buffer asks the actor for what it has and waits up to PATIENCE_NS. This keeps the bound on
    lag without losing data: the actor hands over its unroll after the current step, and the learner
    takes it in. An environment whose step takes longer delivers too late; its unroll is discarded.
    """

    def __init__(
        self,
        max_lag: int,
        actors: Sequence[ActorRows],
        now_ns: Clock = time.monotonic_ns,
    ) -> None:
        self._max_lag = max_lag
        self._orders = BufferOrders(actors)
        self._gauges = [actor.gauges for actor in actors]
        self._now_ns = now_ns
        self._since: dict[int, tuple[int, int]] = {}
        """For each actor, the round that was waited for last, and the time when that began."""
        self._gone: set[int] = set()
        """Actors that died; their gauges are out of date."""
        self._version = -1
        self._awaited: list[tuple[int, int]] = []
        """(actor, round) of the unrolls that hold up this version. Unrolls begun now are of this
        version and are not late."""
        for actor in range(len(actors)):
            self._orders.hurry_no_more(actor)  # an earlier buffer may have asked, in other rounds

    def forget(self, actor: int) -> None:
        """Forget an actor that died: its unroll is no longer in work, its round is made again."""
        self._gone.add(actor)
        self._orders.hurry_no_more(actor)
        self._since.pop(actor, None)

    def came(self, actor: int) -> None:
        """Note that the actor has started, with nothing in work: its gauges are its own again."""
        self._gone.discard(actor)

    def holds_up(self, version: int, in_work: RoundInWork) -> bool:
        """Return whether the next version should wait for one of the unrolls in work."""
        if version != self._version:
            self._version = version
            self._awaited = self._ask(in_work)
        while self._awaited:
            actor, round_number = self._awaited[-1]
            is_in_work = self._is_late(actor) and in_work(actor) == round_number
            if is_in_work and self._now_ns() - self._since[actor][1] < PATIENCE_NS:
                return True
            self._awaited.pop()
        return False

    def _ask(self, in_work: RoundInWork) -> list[tuple[int, int]]:
        asked = []
        for actor in range(len(self._gauges)):
            if not self._is_late(actor) or (round_number := in_work(actor)) is None:
                continue
            self._orders.hurry(actor, round_number)
            if self._since.get(actor, (-1, 0))[0] != round_number:
                self._since[actor] = round_number, self._now_ns()
            asked.append((actor, round_number))
        return asked

    def _is_late(self, actor: int) -> bool:
        started = self._gauges[actor][Gauge.STARTED_VERSION] - 1
        return (
            started >= 0 and actor not in self._gone and self._version + 1 - started > self._max_lag
        )
