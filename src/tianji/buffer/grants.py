"""Grants: the balance carried out on the lanes. Who is there, who is owed what, who is parked.

Nothing here looks at all actors when an unroll arrives: there may be thousands.
"""

from __future__ import annotations

from collections.abc import Sequence

from tianji.balance.parking import ParkingState, after_version, after_wait
from tianji.balance.set_point import SetPoint
from tianji.balance.turns import Turns
from tianji.buffer.presence import Presence
from tianji.channels.gauges import Gauge
from tianji.channels.interface import Receiver


class Grants:
    """Deals out turns and delivers them as grants."""

    def __init__(
        self,
        point: SetPoint,
        may_park: bool,
        receiver: Receiver,
        gauges: memoryview[int],
        actor_gauges: Sequence[memoryview[int]],
    ) -> None:
        num_actors = receiver.num_lanes
        is_serial = point.lag_target == 0
        at_once = max(1, point.unrolls_per_version // num_actors)
        self._receiver = receiver
        self._gauges = gauges
        self.presence = Presence(receiver, gauges, actor_gauges)
        self.turns = Turns(num_actors, is_serial, at_once)
        self._owed: dict[int, int] = {}
        """Dealt and not yet delivered, by actor: it is still starting, or no slot was free."""
        self._may_park = may_park and not is_serial and num_actors > 1
        self._parking = ParkingState(num_actors, num_actors)
        self._show_active()

    @property
    def num_outstanding(self) -> int:
        return self.turns.num_outstanding

    def round_in_work(self, actor: int) -> int | None:
        held = self.turns.outstanding[actor]
        return self.turns.rounds[actor] - held if held else None

    def deal(self, budget: int) -> None:
        """Let this many more unrolls be started, as far as there are actors for them."""
        for actor in self.turns.deal(budget):
            self._owed[actor] = self._owed.get(actor, 0) + 1
        for actor, count in tuple(self._owed.items()):
            self._deliver(actor, count)

    def _deliver(self, actor: int, count: int) -> None:
        if actor in self.presence.absent:
            return  # its share is kept for it, or serial training would depend on who comes first
        left = count - self._receiver.grant(actor, self.turns.rounds[actor] - count, count)
        if left:
            self._owed[actor] = left
        else:
            del self._owed[actor]

    # Coming and going.

    def look_around(self) -> bool:
        """Whether somebody has come, or will never come."""
        changes = self.presence.changes()
        for actor in changes.given_up:
            self._owed.pop(actor, None)
            self.turns.gave_up(actor)
        for actor in changes.come:
            self.turns.back(actor)
        return bool(changes.come or changes.given_up)

    def lost(self, actor: int, resets: int) -> None:
        """Its lane was reset, after so many replacements: what it held may be given to others."""
        self._owed.pop(actor, None)
        self.turns.lost(actor)
        self.presence.lost(actor, resets)

    # Parking.

    def after_version(self, is_ahead: bool) -> None:
        if self._may_park:
            self._park(after_version(self._parking, is_ahead))

    def is_parking(self) -> bool:
        return self._parking.active < self._parking.num_actors

    def wake_more(self) -> None:
        """The learner waits for what the parked ones could make."""
        self._park(after_wait(self._parking))

    def _park(self, state: ParkingState) -> None:
        self._parking = state
        if state.active != self.turns.active:
            self.turns.active = state.active
            self._show_active()

    def _show_active(self) -> None:
        self._gauges[Gauge.ACTIVE] = self._parking.active
