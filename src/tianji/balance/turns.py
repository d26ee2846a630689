"""Decide which actor may start the next unroll. Counts only; no clock, no I/O.

The actor with the fewest grants at hand comes first, then the one that was granted least so far: a
slow actor keeps what it has and takes nothing from the others. Serial training deals out rounds
evenly instead, whatever the speeds, so that every engine sees the same data.

A run may have thousands of actors, so nothing here looks at all of them at every change: they wait
in a heap, and an outdated entry is skipped when it comes up.

Parking decides how many actors may work at once if there are more of them than cores. After every
version all actors get new grants. With more workers than cores they would all wake up and push the
learner off its core, although the run waits for the learner. So while production is ahead, one
actor after the other is parked: it sleeps until its turn comes.

    production was ahead when a version was finished, several times in a row    one fewer
    the learner had to wait for unrolls                                         twice as many

A number that turned out to be too small is tried again only after twice as many versions as
before, so that it does not oscillate. Pure functions of the last state and of what happened.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace


class Turns:
    """`deal` gives permissions, `arrived` takes one back; in between an actor is at work.

    outstanding: by actor, what is granted and has not arrived.
    rounds: by actor, what was granted in the whole run, without what died with an actor.
    num_at_work: actors that hold a grant.
    active: how many may be at work; the others are parked.
    """

    def __init__(self, num_actors: int, is_serial: bool, at_once: int = 1) -> None:
        """at_once: how many unrolls an actor is given at a time while others are parked."""
        self._is_serial = is_serial
        self._at_once = at_once
        self.outstanding = [0] * num_actors
        self.rounds = [0] * num_actors
        self.num_outstanding = 0
        self.num_at_work = 0
        self.active = num_actors
        self._is_out = [False] * num_actors
        self._heap: list[tuple[int, int, int]] = []
        self._renew()

    def load(self, rounds: list[int]) -> None:
        """Continue after these rounds; no actor holds a grant."""
        self.rounds = list(rounds)
        self._renew()

    def deal(self, budget: int) -> list[int]:
        """Return the actors that may start an unroll, in order; one may appear several times."""
        dealt: list[int] = []
        while len(dealt) < budget and (actor := self._next()) is not None:
            is_parking = self.active < len(self.rounds)
            count = min(self._at_once, budget - len(dealt)) if is_parking else 1
            self.give(actor, count)
            dealt.extend([actor] * count)
        return dealt

    def _next(self) -> int | None:
        """Return the next actor; None if all that may work have enough."""
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
        """Grant an actor this many unrolls, whether or not it is its turn."""
        self.num_at_work += not self.outstanding[actor]
        self.outstanding[actor] += count
        self.rounds[actor] += count
        self.num_outstanding += count
        self._put(actor)

    def arrived(self, actor: int, round_number: int) -> bool:
        """Take back the permission for an unroll that has arrived.

        Returns False if the actor holds none for this round. An actor makes its rounds in order,
        so an earlier round was declared lost and is made again: it must not count twice.
        """
        if not self.rounds[actor] - self.outstanding[actor] <= round_number < self.rounds[actor]:
            return False
        self.outstanding[actor] -= 1
        self.num_outstanding -= 1
        self.num_at_work -= not self.outstanding[actor]
        if not self._is_serial:
            self._put(actor)
        return True

    def lost(self, actor: int) -> None:
        """Take back all grants of an actor that died. Serial training waits for its successor;
        else its turns go to the others until the successor is there."""
        held = self.outstanding[actor]
        self.rounds[actor] -= held
        self.num_outstanding -= held
        self.num_at_work -= held > 0
        self.outstanding[actor] = 0
        self._is_out[actor] = not self._is_serial
        self._put(actor)

    def gave_up(self, actor: int) -> None:
        """Leave out an actor that is not replaced."""
        self.lost(actor)
        self._is_out[actor] = True

    def back(self, actor: int) -> None:
        """Include an actor again: its successor is there."""
        if self._is_out[actor]:
            self._is_out[actor] = False
            self._put(actor)

    def _entry(self, actor: int) -> tuple[int, int, int] | None:
        """Return the valid entry of an actor in the heap; None if it has none."""
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
            self._renew()  # drop outdated entries

    def _renew(self) -> None:
        entries = map(self._entry, range(len(self.rounds)))
        self._heap = [entry for entry in entries if entry is not None]
        heapq.heapify(self._heap)


FIRST_PATIENCE = 4
MOST_PATIENCE = 256


@dataclass(frozen=True, slots=True)
class ParkingState:
    """ParkingState(num_actors=8, active=8)

    calm: versions in a row for which production was ahead.
    patience: calm versions before the next actor is parked.
    """

    num_actors: int
    active: int
    calm: int = 0
    patience: int = FIRST_PATIENCE


def after_version(state: ParkingState, is_ahead: bool) -> ParkingState:
    """Return the state after a version. is_ahead: all that was allowed before it had arrived."""
    calm = state.calm + 1 if is_ahead else 0
    if calm < state.patience or state.active == 1:
        return replace(state, calm=min(calm, MOST_PATIENCE))
    return replace(state, active=state.active - 1, calm=0)


def after_wait(state: ParkingState) -> ParkingState:
    """Return the state after the learner had to wait for unrolls."""
    if state.active == state.num_actors:
        return replace(state, calm=0)
    return replace(
        state,
        active=min(state.num_actors, 2 * state.active),
        calm=0,
        patience=min(2 * state.patience, MOST_PATIENCE),
    )
