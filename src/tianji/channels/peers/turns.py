"""Turns: threads of one process that run one at a time, in an order that only they decide.

    with turns.of(0):                 # on the thread of each: waits for its turn
        turns.give_way(0)             # the next one that can go on has its turn
        turns.wait(0, is_there)       # the same, until there is what it waits for

The turn goes round, and passes by those that still wait. Nothing depends on the system's choice of
threads, so that a run is the same to the bit each time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tianji.errors import ReduceBroken

Condition = Callable[[], bool]


class Turns:
    """The turn of one of several members."""

    def __init__(self, num_members: int) -> None:
        self._changed = threading.Condition()
        self._num_members = num_members
        self._has_turn = 0
        self._waits_for: dict[int, Condition] = {i: lambda: True for i in range(num_members)}
        """What each member waits for. A member that has ended is not here."""
        self._is_stuck = False

    @contextmanager
    def of(self, member: int) -> Iterator[None]:
        """Wait for the first turn of a member; afterwards it takes no more part."""
        self._until_its_turn(member)
        try:
            yield
        finally:
            del self._waits_for[member]
            self._pass_on(member)

    def give_way(self, member: int) -> None:
        self.wait(member, lambda: True)

    def wait(self, member: int, is_there: Condition) -> None:
        """Let others have their turns until there is what this member waits for."""
        self._waits_for[member] = is_there
        self._pass_on(member)
        self._until_its_turn(member)

    def _pass_on(self, member: int) -> None:
        """Give the turn to the next member that can go on, this one last."""
        with self._changed:
            order = (member + 1 + i for i in range(self._num_members))
            for other in (number % self._num_members for number in order):
                if other in self._waits_for and self._waits_for[other]():
                    self._has_turn = other
                    break
            else:
                self._is_stuck = bool(self._waits_for)
            self._changed.notify_all()

    def _until_its_turn(self, member: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._has_turn == member or self._is_stuck)
            if self._is_stuck:
                raise ReduceBroken(
                    "The learners of the groups wait for each other, and none comes."
                )
