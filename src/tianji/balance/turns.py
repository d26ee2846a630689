"""Turns: which actor may start the next unroll. Counts only; no clock, no I/O.

Whoever holds least comes first, then whoever was given least: a slow actor keeps what it has and
takes nothing from the others. Serial training deals out rounds evenly instead, whoever is faster or
attaches first: the same data in every engine.

A run may have thousands of actors, so nothing here looks at all of them at every change: they wait
in a heap, and an entry that has become untrue is passed over when it comes up.
"""

from __future__ import annotations

import heapq


class Turns:
    """`deal` gives permissions, `arrived` takes one back; in between an actor is at work."""

    def __init__(self, num_actors: int, is_serial: bool, at_once: int = 1) -> None:
        """at_once: how many unrolls an actor is given at a time while others are parked."""
        self._is_serial = is_serial
        self._at_once = at_once
        self.outstanding = [0] * num_actors
        """Per actor: granted and not yet arrived."""
        self.rounds = [0] * num_actors
        """Per actor: granted in the whole run, less those that died with one."""
        self.num_outstanding = 0
        self.num_at_work = 0
        """Actors that hold a grant."""
        self.active = num_actors
        """How many may be at work; fewer than all means that the others are parked."""
        self._is_out = [False] * num_actors
        self._heap: list[tuple[int, int, int]] = []
        self._renew()

    def load(self, rounds: list[int]) -> None:
        """Go on after these rounds; nobody holds anything yet."""
        self.rounds = list(rounds)
        self._renew()

    def deal(self, budget: int) -> list[int]:
        """The actors that may start one unroll each, in order, one of them perhaps several."""
        dealt: list[int] = []
        while len(dealt) < budget and (actor := self._next()) is not None:
            is_parking = self.active < len(self.rounds)
            count = min(self._at_once, budget - len(dealt)) if is_parking else 1
            self.give(actor, count)
            dealt.extend([actor] * count)
        return dealt

    def _next(self) -> int | None:
        """Whose turn it is; None when everybody who may work has enough."""
        heap = self._heap
        while heap and heap[0] != self._entry(heap[0][2]):
            heapq.heappop(heap)
        if not heap:
            return None
        actor = heap[0][2]
        if self.active == len(self.rounds):
            return actor
        has_place = self.num_at_work < self.active
        return actor if has_place and not self.outstanding[actor] else None

    def give(self, actor: int, count: int) -> None:
        self.num_at_work += not self.outstanding[actor]
        self.outstanding[actor] += count
        self.rounds[actor] += count
        self.num_outstanding += count
        self._put(actor)

    def arrived(self, actor: int, round_number: int) -> bool:
        """Take back the permission for an unroll that is there; False where the actor holds none
        for this round. An actor makes its rounds in order, so an earlier one was declared lost, is
        made again or was made again, and must not count twice."""
        if not self.rounds[actor] - self.outstanding[actor] <= round_number < self.rounds[actor]:
            return False
        self.outstanding[actor] -= 1
        self.num_outstanding -= 1
        self.num_at_work -= not self.outstanding[actor]
        if not self._is_serial:
            self._put(actor)
        return True

    def lost(self, actor: int) -> None:
        """It died: what it held is nobody's now. Serial training waits for its successor; else its
        turns go to the others until it is back."""
        held = self.outstanding[actor]
        self.rounds[actor] -= held
        self.num_outstanding -= held
        self.num_at_work -= held > 0
        self.outstanding[actor] = 0
        self._is_out[actor] = not self._is_serial
        self._put(actor)

    def gave_up(self, actor: int) -> None:
        """It will not come back."""
        self.lost(actor)
        self._is_out[actor] = True

    def back(self, actor: int) -> None:
        """A successor is there."""
        if self._is_out[actor]:
            self._is_out[actor] = False
            self._put(actor)

    def _entry(self, actor: int) -> tuple[int, int, int] | None:
        """How it stands in the heap now; None: not at all."""
        if self._is_out[actor]:
            return None
        held = 0 if self._is_serial else self.outstanding[actor]
        return held, self.rounds[actor], actor

    def _put(self, actor: int) -> None:
        entry = self._entry(actor)
        if entry is None:
            return
        heapq.heappush(self._heap, entry)
        if len(self._heap) > 4 * len(self.rounds) + 16:
            self._renew()  # entries of states that did not come again

    def _renew(self) -> None:
        entries = map(self._entry, range(len(self.rounds)))
        self._heap = [entry for entry in entries if entry is not None]
        heapq.heapify(self._heap)
