"""Gathering: the buffer of algorithms whose items are gradients.

Takes      tokens (Stream), one for every gradient that an actor has added to its sum
Gives      the sum of all actors' sums to the learner, once per version; slots to the actors
Waits for  nothing; a tick that finds nothing says so
Unblocked  by a token, or by a version that the learner finished
Stops      between two ticks

The gather rule counts tokens. When it has enough, the round is closed: every actor sees that in its
gauges and drops what it has in work, and the learner takes every sum as it lies there, with the
true number of gradients in it, which may be more than were counted.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tianji.buffer.absence import Absence
from tianji.buffer.adding import Adding
from tianji.buffer.episodes import Episodes
from tianji.buffer.interface import Progress
from tianji.buffer.lag import LagGauge
from tianji.buffer.losses import Losses
from tianji.buffer.presence import Presence
from tianji.buffer.rules import GatherRule
from tianji.buffer.supply import Supply
from tianji.channels.gauges import Gauge
from tianji.channels.interface import Receiver
from tianji.types import Array, Batch, Clock, Stamp

AHEAD = 2
"""Slots that an actor has at hand, so that it goes on while its token is on the way."""


@dataclass(frozen=True, slots=True)
class GatherPlan:
    """What the gathering is told."""

    num_parameters: int
    absent_after_s: float | None = None
    closing_s: float = 0.0
    """How long the sums are on their way when a round was closed, where that is given."""
    calls_absent: bool = False
    """Tell actors that we go on without of closed rounds too: they have to take part in adding up.
    Otherwise they finish what they have in work, and so show that they are back."""


class Gathering:
    """`take` gives one batch per closed round: the weighted sum of all contributions."""

    def __init__(
        self,
        plan: GatherPlan,
        receiver: Receiver,
        rule: GatherRule,
        adding: Adding,
        progress: Progress,
        gauges: memoryview[int],
        actor_gauges: Sequence[memoryview[int]],
        now_ns: Clock = time.monotonic_ns,
    ) -> None:
        num_actors = receiver.num_lanes
        self._plan = plan
        self._receiver = receiver
        self._rule = rule
        self._adding = adding
        self._episodes = Episodes(receiver, progress)
        self._gauges = gauges
        self._actor_gauges = actor_gauges
        self._now_ns = now_ns
        self._presence = Presence(receiver, gauges, actor_gauges)
        self._supply = Supply(receiver, self._presence)
        self._absence = Absence(rule, plan.absent_after_s, num_actors, now_ns)
        self._tokens: deque[Stamp] = deque()
        self._counted: list[Stamp] = []
        """Tokens of the round."""
        self._losses = Losses(gauges, actor_gauges)
        self._version = 0
        self._is_taken = False
        self._is_adding = False
        """Sums are on their way to each other; whoever brings the total rings."""
        self.closed_ns: int | None = None
        self._opened_ns = now_ns()
        self._sum_P: Array = np.empty(plan.num_parameters, np.float32)
        self.lag = LagGauge()
        self.items_put = 0
        self.items_taken = 0
        self._counts = [0] * num_actors
        """Gradients taken of each actor, in all."""
        for actor in range(num_actors):
            self._supply.give(actor, 1 if rule.one_each else AHEAD)
        rule.begin(is_first=True)

    def tick(self) -> bool:
        worked = self._reset_lanes()
        worked |= self._receive_all()
        worked |= self._count()
        self._look_around()
        self._supply.deliver(self._idle())
        return worked

    def _idle(self) -> set[int]:
        """Who gets no work: while a process starts that the round waits for, those whom it does not
        wait for. They would spend steps by the thousand on one round."""
        if not self._presence.absent or self.closed_ns is not None:
            return set()
        waiting = set(self._rule.waiting_for())
        is_held_up = not waiting.isdisjoint(self._presence.absent)
        return set(range(self._receiver.num_lanes)) - waiting if is_held_up else set()

    def _receive_all(self) -> bool:
        worked = False
        while (slot := self._receiver.take()) is not None:
            self._receive(slot)
            worked = True
        return worked

    def _receive(self, slot: int) -> None:
        """A token's slot says which episodes ended, and is free again."""
        stamp = self._receiver.stamp(slot)
        if not self._supply.arrived(stamp.actor, stamp.round):
            self._receiver.release(slot)
            self._losses.came_again(stamp)
            return
        self._episodes.add(stamp, slot)
        self._receiver.release(slot)
        self._tokens.append(stamp)
        if not self._rule.one_each:
            self._supply.give(stamp.actor)
        self._absence.heard_of(stamp.actor)
        self._gauges[Gauge.ITEMS] += 1
        self._gauges[Gauge.RECEIVED_STEPS] += stamp.env_steps
        self.items_put += 1

    def _reset_lanes(self) -> bool:
        replaced = self._presence.replaced()
        for actor, resets in replaced:
            for slot in self._receiver.reset_lane(actor):
                self._receive(slot)
            self._supply.lost(actor)
            self._presence.lost(actor, resets)
        return bool(replaced)

    def _look_around(self) -> None:
        changes = self._presence.changes()
        for actor in changes.come:
            self._absence.came(actor)
        for actor in changes.given_up:
            self._supply.gave_up(actor)
            self._absence.gave_up(actor)
        if self.closed_ns is None and self._absence.closes():
            self._close()

    # The round.

    def _count(self) -> bool:
        """Let the rule count tokens until it closes the round; the rest waits for the next."""
        worked = False
        while self._tokens and self.closed_ns is None:
            stamp = self._tokens.popleft()
            worked = True
            if stamp.oldest_version < self._version and not self._rule.takes_old:
                self._pass_over(stamp)
                continue
            self._counted.append(stamp)
            if self._rule.arrived(stamp.actor):
                self._close()
        return worked

    def _pass_over(self, stamp: Stamp) -> None:
        """A token of a round that is closed."""
        self._rule.join(stamp.actor)
        if self._rule.one_each:
            self._supply.give(stamp.actor)
        self._losses.came_late(stamp)

    def _close(self) -> None:
        self.closed_ns = self._now_ns()
        if not self._rule.takes_old:
            self._gauges[Gauge.CLOSED] = self._version + 1
            spared = () if self._plan.calls_absent else self._absence.absent
            for actor, row in enumerate(self._actor_gauges):
                if actor not in spared:
                    row[Gauge.CLOSED] = self._version + 1
            self._receiver.wake_senders()

    @property
    def due_ns(self) -> int:
        """When the batch of a closed round may be taken, or somebody is left out of an open one; 0
        where that is not a matter of time."""
        if self.closed_ns is None:
            return self._absence.due_ns
        if self._is_adding:
            return 0
        return self.closed_ns + round(self._plan.closing_s * 1e9)

    def take(self) -> Batch | None:
        """The sum of the round's contributions, when it is closed."""
        if self.closed_ns is None or self._is_taken or self._now_ns() < self.due_ns:
            return None
        counts = self._add_up()
        self._is_adding = counts is None
        if counts is None:
            return None
        self._is_taken = True
        self._episodes.tell()
        count = sum(counts)
        weight = sum(self._rule.weigh(one)[1] for one in counts if one)
        for stamp in self._counted:
            self.lag.add(self._version - stamp.oldest_version)
        self.items_taken += count
        return Batch(
            {"sum": self._sum_P, "weight": np.array([weight])},
            tuple(self._counted),
            num_items=count,
            num_steps=sum(stamp.env_steps for stamp in self._counted if counts[stamp.actor]),
        )

    def _add_up(self) -> list[int] | None:
        """All contributions; the true count of each actor, or None while they are on their way."""
        actors = {stamp.actor for stamp in self._counted}
        counts = self._adding.add_up(self._version_of_round(), actors, self._sum_P)
        if counts is None:
            return None
        self._losses.taken(self._version, self._counted, counts)
        for actor, count in enumerate(counts):
            self._counts[actor] += count
        return counts

    def _version_of_round(self) -> int:
        """At which its gradients were made."""
        if not self._rule.takes_old:
            return self._version
        return self._counted[0].oldest_version

    def finish(self, batch: Batch, version: int) -> int:
        """The learner published `version` from this batch: the next round begins."""
        if self._rule.one_each:
            for actor in {stamp.actor for stamp in self._counted}:
                self._supply.give(actor)
        self._counted = []
        self._version = version
        self.closed_ns = None
        self._opened_ns = self._now_ns()
        for row in self._actor_gauges:
            row[Gauge.OPENED_NS] = self._opened_ns
        self._is_taken = False
        self._rule.begin(is_first=False)
        self._absence.begin()
        self._count()
        self._supply.deliver()
        self._receiver.wake_senders()  # who was not needed any more waits for this version
        return batch.num_steps

    def continue_at(self, version: int) -> None:
        """The learner goes on at this version, after a resume. Versions never fall, so one that
        goes back to its beginning has another number than the first."""
        self._version = version
        self._rule.begin(is_first=self.items_taken == 0)

    def news(self) -> list[str]:
        """Whom the round waits for, who was left out, who is back; each thing once."""
        news = self._adding.news()
        return news if self.closed_ns is not None else [*news, *self._absence.news()]

    def metrics(self) -> dict[str, float]:
        return {}

    def record(self) -> dict[str, Any]:
        """Who has contributed, and what was lost."""
        return {
            "gather": {
                "counts": list(self._counts),
                "discarded_steps": self._losses.steps,
                "own_steps": sum(row[Gauge.UPDATES] for row in self._actor_gauges),
                "waiting_for": self._rule.waiting_for(),
                "late": [] if self.closed_ns is not None else self._absence.late(),
                "absent": sorted(self._absence.absent),
                "open_s": (self._now_ns() - self._opened_ns) / 1e9,
                "closing_s": self._plan.closing_s,
            }
        }

    @property
    def discarded(self) -> int:
        """Gradients that reached no version."""
        return self._losses.gradients

    def state(self) -> dict[str, Any]:
        """Between two versions nothing is held but the counts: a round is made anew."""
        return {
            "counts": list(self._counts),
            "rounds": self._supply.rounds(),
            "items_put": self.items_put,
            "items_taken": self.items_taken,
            "losses": self._losses.state(),
            "lag": self.lag.state(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        if len(state["counts"]) == len(self._counts):
            self._counts = [int(count) for count in state["counts"]]
            self._supply.load(state["rounds"])
        self.items_put = int(state["items_put"])
        self.items_taken = int(state["items_taken"])
        self._losses.load_state(state["losses"])
        self.lag.load_state(state["lag"])
