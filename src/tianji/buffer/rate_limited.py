"""The rate-limited gate: Reverb's limiter (balance/samples_per_insert.py) decides; the side that
may not proceed waits.

An actor has a slot that it writes and one at hand, so that it need not wait for an answer after
every unroll; Reverb's writers have items in flight for the same reason. An unroll that has arrived
and may not be inserted stays in its slot, and its actor gets no further slot until it is in the
store: its insert is blocked, which is counted and timed. The learner waits while it may not sample
a batch. Blocked unrolls enter in the order of their arrival, when a batch was sampled.
"""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from tianji.balance.samples_per_insert import Limits, SamplesPerInsert
from tianji.balance.turns import Turns
from tianji.buffer.interface import Entry, Gate
from tianji.buffer.lanes import Lanes
from tianji.channels.gauges import Gauge
from tianji.channels.interface import Receiver
from tianji.channels.orders import BufferRows
from tianji.types import Clock, Stamp

SLOTS_AT_HAND = 2
"""Slots of an actor: one that it writes, and one for an unroll that is on its way or blocked."""


class Table(Protocol):
    """What the limiter counts as items, and when items leave the store."""

    is_copy: bool
    """An unroll is copied when it is inserted, so that its slot is free again; else it is taken
    where it lies."""

    def items(self, stamp: Stamp) -> int:
        """Return the items of an unroll."""
        ...

    def pushed_out(self, stamp: Stamp) -> int:
        """Return how many items leave the store because this unroll is inserted."""
        ...

    def used_up(self, count: int) -> int:
        """Return how many items leave the store because so many are sampled."""
        ...

    def room(self, given_up: Collection[int]) -> float:
        """Return the most items that the store can hold if these actors insert none any more."""
        ...


class QueueTable(Table):
    """Every unroll is an item, and leaves the store when it is sampled."""

    is_copy = False

    def items(self, stamp: Stamp) -> int:
        return 1

    def pushed_out(self, stamp: Stamp) -> int:
        return 0

    def used_up(self, count: int) -> int:
        return count

    def room(self, given_up: Collection[int]) -> float:
        return math.inf


class ReplayTable(Table):
    """Every step is an item, and leaves the store when newer steps of its actor push it out."""

    is_copy = True

    def __init__(self, num_actors: int, kept_per_actor: int) -> None:
        self._kept = kept_per_actor
        self._held = [0] * num_actors

    def items(self, stamp: Stamp) -> int:
        return stamp.env_steps

    def pushed_out(self, stamp: Stamp) -> int:
        held = self._held[stamp.actor] + stamp.env_steps
        self._held[stamp.actor] = min(held, self._kept)
        return held - self._held[stamp.actor]

    def used_up(self, count: int) -> int:
        return 0

    def room(self, given_up: Collection[int]) -> float:
        return sum(
            held if actor in given_up else self._kept for actor, held in enumerate(self._held)
        )


@dataclass(frozen=True, slots=True)
class RateLimitedPlan:
    """RateLimitedPlan(limits_around(1.0, 4, 4.0), items_per_batch=4, items_per_unroll=1)"""

    limits: Limits
    items_per_batch: int
    items_per_unroll: int
    """Items of a whole unroll; some have fewer."""


class _Refused(NamedTuple):
    stamp: Stamp
    slot: int


class RateLimited(Gate):
    """Lets unrolls into the store, and batches out of it, as the limiter allows."""

    def __init__(
        self,
        plan: RateLimitedPlan,
        table: Table,
        receiver: Receiver,
        rows: BufferRows,
        now_ns: Clock = time.monotonic_ns,
    ) -> None:
        num_actors = receiver.num_lanes
        self.lanes = Lanes(receiver, Turns(num_actors, is_serial=True), rows)
        self.version = 0
        self.limiter = SamplesPerInsert(plan.limits)
        self._plan = plan
        self._table = table
        self._entered: list[Entry] = []
        """What has entered the store and no batch has counted yet."""
        self._refused: deque[_Refused] = deque()
        self._blocked = BlockedInserts(rows.gauges, now_ns)
        self._given_up: set[int] = set()
        self._news: list[str] = []
        rows.gauges[Gauge.ACTIVE] = num_actors
        for actor in range(num_actors):
            self.lanes.give(actor, SLOTS_AT_HAND)

    def starts_with(self, num_held: int) -> None:
        self.limiter.starts_with(num_held * self._plan.items_per_unroll)

    def arrived(self, stamp: Stamp, slot: int) -> bool:
        if self._refused or not self._may_insert(stamp):
            self._refused.append(_Refused(stamp, slot))
            self._blocked.begin(stamp.actor)
            return False
        self._insert(stamp, None if self._table.is_copy else slot)
        return self._table.is_copy

    def _may_insert(self, stamp: Stamp) -> bool:
        """Ask the limiter; a store that holds less than its minimum always takes a whole unroll,
        else neither side could go on if the minimum is no multiple of it."""
        limiter = self.limiter
        is_short = limiter.size < limiter.limits.min_size
        return is_short or limiter.can_insert(self._table.items(stamp))

    def _insert(self, stamp: Stamp, slot: int | None) -> None:
        self.limiter.insert(self._table.items(stamp))
        self.limiter.delete(self._table.pushed_out(stamp))
        entered_at = self.version if self._table.is_copy else None
        self._entered.append(Entry(stamp, slot, entered_at))
        if stamp.actor not in self._given_up:
            self.lanes.give(stamp.actor)

    def lost(self, actor: int) -> None:
        """The successor is owed what the dead actor held; what had arrived stays."""
        if held := self.lanes.lost(actor):
            self.lanes.give(actor, held)

    def gave_up(self, actor: int) -> None:
        self._given_up.add(actor)
        self._lower_minimum(actor)

    def _lower_minimum(self, actor: int) -> None:
        """Let the learner sample from what the store can hold without this actor."""
        limits = self.limiter.limits
        room = self._table.room(self._given_up)
        if room >= limits.min_size:
            return
        lowered = max(1, int(room))
        self.limiter.limits = replace(limits, min_size=lowered)
        self._news.append(
            f"actor-{actor} is not started again, and without it the replay store holds at most "
            f"{lowered:,} items: the learner samples from there on, and not from "
            f"limiter.min_size = {limits.min_size:,}."
        )

    def news(self) -> list[str]:
        news, self._news = self._news, []
        return news

    def tick(self) -> bool:
        self._blocked.count()
        self.lanes.deliver()
        return False

    def may_take(self) -> bool:
        return self.limiter.can_sample(self._plan.items_per_batch)

    def entering(self) -> list[Entry] | None:
        count = self._plan.items_per_batch
        self.limiter.sample(count)
        used_up = self._table.used_up(count)
        self.limiter.delete(used_up)
        end = used_up or len(self._entered)
        entering, self._entered = self._entered[:end], self._entered[end:]
        self._let_in()
        return entering

    def _let_in(self) -> None:
        """Insert what was refused, as far as that is allowed now."""
        while self._refused and self._may_insert(self._refused[0].stamp):
            stamp, slot = self._refused.popleft()
            self._blocked.end(stamp.actor)
            self._insert(stamp, slot)

    def finish(self, version: int) -> None:
        self.version = version
        self.lanes.deliver()

    def continue_at(self, version: int, is_first: bool) -> None:
        self.version = version

    def waiting(self) -> Iterable[Stamp]:
        yield from (refused.stamp for refused in self._refused)
        yield from (entry.stamp for entry in self._entered if entry.slot is not None)


class BlockedInserts:
    """Counts the inserts that had to wait, and the time in which actors had such an insert."""

    def __init__(self, gauges: memoryview[int], now_ns: Clock) -> None:
        self._gauges = gauges
        self._now_ns = now_ns
        self._num_of: Counter[int] = Counter()
        """Blocked unrolls by actor; none of the others are in it."""
        self._counted_ns = 0

    def begin(self, actor: int) -> None:
        self.count()
        self._num_of[actor] += 1
        self._gauges[Gauge.BLOCKED] += 1

    def end(self, actor: int) -> None:
        self.count()
        self._num_of[actor] -= 1
        if not self._num_of[actor]:
            del self._num_of[actor]

    def count(self) -> None:
        """Add the time since the last call."""
        now_ns = self._now_ns()
        self._gauges[Gauge.BLOCKED_NS] += len(self._num_of) * (now_ns - self._counted_ns)
        self._counted_ns = now_ns
