"""The gather gate: a batch may be taken when a gather rule has enough gradients of a version.

Every arrival is a token for a gradient that its actor has added to its sum. The rule counts tokens;
when it has enough, the round is closed. Every actor is told, and drops what it has in work. Then
every sum is taken as it is, with the true number of gradients in it, which may be more than were
counted.

An actor's sum outlives the actor, but not its host. What was counted of a lost host is counted as
lost, and a closed round whose sums were not taken yet is opened again: others, or whoever has the
actors then, make as many gradients as the rule wants.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tianji.balance.turns import Turns
from tianji.buffer.gather.absence import Absence
from tianji.buffer.gather.adding import Adding
from tianji.buffer.gather.rules import GatherRule
from tianji.buffer.interface import Entry, Gate
from tianji.buffer.lanes import Lanes
from tianji.buffer.orders import BufferOrders
from tianji.channels.gauges import Gauge
from tianji.channels.interface import Receiver
from tianji.channels.orders import BufferRows
from tianji.records import Rounds
from tianji.types import GRADIENTS, Array, Clock, Stamp

AHEAD = 2
"""Slots that an actor holds, so that it continues while its token is on the way."""


@dataclass(frozen=True, slots=True)
class GatherPlan:
    """GatherPlan(num_parameters=1000, absent_after_s=30.0)"""

    num_parameters: int
    absent_after_s: float | None = None
    closing_s: float = 0.0
    """Time that the sums of a closed round take to arrive, where it is given."""
    calls_absent: bool = False
    """Tell actors that were left out of closed rounds too: they have to take part in adding up.
    Otherwise they finish what they have in work, and so show that they are back."""
    max_lag: int | None = None
    """Versions by which a gradient may be behind, if the rule takes old ones; None: any number."""


class GatherGate(Gate):
    """Counts the tokens of a round, closes it, and begins the next one."""

    def __init__(
        self,
        plan: GatherPlan,
        rule: GatherRule,
        adding: Adding,
        receiver: Receiver,
        rows: BufferRows,
        now_ns: Clock = time.monotonic_ns,
    ) -> None:
        num_actors = receiver.num_lanes
        self._plan = plan
        self.rule = rule
        self._adding = adding
        self._gauges = rows.gauges
        self._actor_gauges = [actor.gauges for actor in rows.actors]
        self._now_ns = now_ns
        self.lanes = Lanes(receiver, Turns(num_actors, is_serial=True), rows)
        self._orders = BufferOrders(rows.actors)
        self._absence = Absence(rule, plan.absent_after_s, num_actors, now_ns)
        self._tokens: deque[Stamp] = deque()
        self.counted: list[Stamp] = []
        """Tokens of the round."""
        self.version = 0
        self._closed_ns: int | None = None
        self._opened_ns = now_ns()
        self.sum_P: Array = np.empty(plan.num_parameters, np.float32)
        """The total of the round that was taken last."""
        self._is_adding = False
        """True while sums are being added up; the thread that does it rings when it is done."""
        self._counts = [0] * num_actors
        """Gradients taken from each actor so far."""
        self._taken_version = -1
        self.taken = [0] * num_actors
        """True counts of each actor's gradients in the round that was taken last."""
        self._seen = [0] * num_actors
        """Tokens of that round."""
        for actor in range(num_actors):
            self.lanes.give(actor, 1 if rule.one_each else AHEAD)
        rule.begin(is_first=True)

    def arrived(self, stamp: Stamp, slot: int) -> bool:
        has_gradient = self.has_gradient(slot)
        if has_gradient:
            self._tokens.append(stamp)
        if not has_gradient or not self.rule.one_each:
            self.lanes.give(stamp.actor)
        self._absence.heard_of(stamp.actor)
        return True

    def has_gradient(self, slot: int) -> bool:
        """Return whether the actor has added a gradient. It has not while it fills its memory: then
        only its steps and episodes count."""
        counts = self.lanes.receiver.arrays.get(GRADIENTS)
        return counts is None or bool(counts[slot, 0])

    def came(self, actor: int) -> None:
        self._absence.came(actor)

    def lost(self, actor: int) -> None:
        """The successor is owed what the dead actor held, for the same rounds."""
        num_forgotten = self._forget(actor) if self._orders.is_sum_lost(actor) else 0
        held = self.lanes.lost(actor)
        if owed := held + (num_forgotten if self.rule.one_each else 0):
            self.lanes.give(actor, owed)

    def _forget(self, actor: int) -> int:
        """Count the actor's gradients of the round as lost, unless its sum was taken; return how
        many that are."""
        if self._taken_version == self.version:
            return 0
        lost = [
            stamp
            for stamp in (*self.counted, *self._tokens)
            if stamp.actor == actor and stamp.oldest_version == self.version
        ]
        for stamp in lost:
            self.lanes.losses.lose(stamp)
        self.counted = [stamp for stamp in self.counted if stamp not in lost]
        self._tokens = deque(stamp for stamp in self._tokens if stamp not in lost)
        self.rule.forget(actor)
        if self._closed_ns is not None and not self.rule.is_closed:
            self._reopen()
        return len(lost)

    def _reopen(self) -> None:
        """Continue the round: actors add to the sums that they have."""
        self._closed_ns = None
        self._is_adding = False
        self._adding.reopen()
        self._orders.reopen(self.version)
        self._gauges[Gauge.CLOSED] = self.version
        self._absence.begin()
        self.lanes.receiver.wake_senders()

    def gave_up(self, actor: int) -> None:
        self._absence.gave_up(actor)

    def tick(self) -> bool:
        worked = self._count()
        if self._closed_ns is None and self._absence.closes():
            self._close()
        self.lanes.deliver(self._idle())
        return worked

    def _idle(self) -> set[int]:
        """Return the actors that get no work: while a process starts that the round waits for,
        those that it does not wait for. They would spend steps by the thousand on one round."""
        absent = self.lanes.presence.absent
        if not absent or self._closed_ns is not None:
            return set()
        waiting = set(self.rule.waiting_for())
        is_held_up = not waiting.isdisjoint(absent)
        return set(range(len(self._counts))) - waiting if is_held_up else set()

    def _count(self) -> bool:
        """Let the rule count tokens until it closes the round; the rest waits for the next."""
        worked = False
        while self._tokens and self._closed_ns is None:
            stamp = self._tokens.popleft()
            worked = True
            if self._is_too_old(stamp):
                self._pass_over(stamp)
                continue
            self.counted.append(stamp)
            if self.rule.arrived(stamp.actor):
                self._close()
        return worked

    def _is_too_old(self, stamp: Stamp) -> bool:
        most = self._plan.max_lag if self.rule.takes_old else 0
        return most is not None and self.version - stamp.oldest_version > most

    def _pass_over(self, stamp: Stamp) -> None:
        """A token that is too old. Its gradient may still have been in the sum of its round when
        that was taken; if not, it is lost."""
        self.rule.join(stamp.actor)
        if self.rule.one_each:
            self.lanes.give(stamp.actor)
        if stamp.oldest_version == self._taken_version:
            self._see(stamp)
        else:
            self.lanes.losses.lose(stamp)

    def _see(self, stamp: Stamp) -> None:
        self._seen[stamp.actor] += 1
        if self._seen[stamp.actor] > self.taken[stamp.actor]:
            self.lanes.losses.lose(stamp)

    def _close(self) -> None:
        self._closed_ns = self._now_ns()
        if not self.rule.takes_old:
            spared = () if self._plan.calls_absent else self._absence.absent
            self._orders.close(self.version, spared)
            self._gauges[Gauge.CLOSED] = self.version + 1
            self.lanes.receiver.wake_senders()

    @property
    def due_ns(self) -> int:
        """Time at which the batch of a closed round may be taken, or an actor is left out of an
        open one; 0 where neither depends on time."""
        if self._closed_ns is None:
            return self._absence.due_ns
        if self._is_adding:
            return 0
        return self._closed_ns + round(self._plan.closing_s * 1e9)

    def may_take(self) -> bool:
        return self._closed_ns is not None and self._now_ns() >= self.due_ns

    def entering(self) -> list[Entry] | None:
        """Add up all sums; None while they are on their way."""
        actors = {stamp.actor for stamp in self.counted}
        counts = self._adding.add_up(self._version_of_round(), actors, self.sum_P)
        self._is_adding = counts is None
        if counts is None:
            return None
        self._took(counts)
        return [Entry(stamp, None) for stamp in self.counted]

    def _version_of_round(self) -> int:
        """Return the version at which the gradients of the closed round were made."""
        return self.counted[0].oldest_version if self.rule.takes_old else self.version

    def _took(self, counts: Sequence[int]) -> None:
        """The round was taken, with so many gradients of each actor; none of one that was left out,
        although its tokens may have been counted."""
        self._taken_version, self.taken = self.version, list(counts)
        self._seen = [0] * len(counts)
        for stamp in self.counted:
            self._see(stamp)
        for actor, count in enumerate(counts):
            self._counts[actor] += count

    def finish(self, version: int) -> None:
        """Begin the next round."""
        if self.rule.one_each:
            for actor in {stamp.actor for stamp in self.counted}:
                self.lanes.give(actor)
        self.counted = []
        self.version = version
        self._closed_ns = None
        self._opened_ns = self._now_ns()
        self._orders.open(self._opened_ns)
        self.rule.begin(is_first=False)
        self._absence.begin()
        self._count()
        self.lanes.deliver()
        self.lanes.receiver.wake_senders()  # actors that dropped their work wait for this version

    def continue_at(self, version: int, is_first: bool) -> None:
        """Continue at this version, which is above 0 even for a learner that starts over."""
        self.version = version
        self.rule.begin(is_first)

    def news(self) -> list[str]:
        """Return which actors the round waits for, were left out, or are back; each thing once."""
        news = self._adding.news()
        return news if self._closed_ns is not None else [*news, *self._absence.news()]

    def rounds_record(self) -> Rounds:
        """Return which actors have contributed, and what was lost."""
        is_open = self._closed_ns is None
        return Rounds(
            counts=list(self._counts),
            discarded_steps=self.lanes.losses.steps,
            own_steps=sum(row[Gauge.UPDATES] for row in self._actor_gauges),
            waiting_for=self.rule.waiting_for(),
            late=self._absence.late() if is_open else [],
            absent=sorted(self._absence.absent),
            open_s=(self._now_ns() - self._opened_ns) / 1e9,
            closing_s=self._plan.closing_s,
        )

    def state(self) -> dict[str, Any]:
        """Return the counts; a round is made again."""
        return {"counts": list(self._counts)}

    def load_state(self, state: dict[str, Any]) -> None:
        if len(state.get("counts", ())) == len(self._counts):
            self._counts = [int(count) for count in state["counts"]]
