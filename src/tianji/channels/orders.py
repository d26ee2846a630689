"""Orders: a Board of desired state for every role, with one writer.

    orders.post("actor-0", Order.RESETS, 1)             # the writer
    if orders.rows["actor-0"][Order.NUMBER] != seen:    # the role, once per tick
        ...

Each order is one word that says what is wanted now, not what to do: posting it twice changes
nothing, and a reader that comes late finds the newest. NUMBER counts the changes, so that a role
looks at one word per tick. A role acknowledges by showing what it has carried out in its own gauges
or on a board of its own. Words stand alone: a reader may see a new word before its number, and
looks again when the number has changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from tianji.channels.memory import new_fence

ORDER_WORDS = 8


class Order(IntEnum):
    """The words of a row."""

    NUMBER = 0
    """How often anything else in this row was changed."""
    STOP = 1
    """Supervisor to every role: how urgently to stop (Stop)."""
    RESETS = 2
    """Supervisor to an actor: how many processes have run it before this one and are gone. To the
    buffer: the same for all actors together."""
    GIVEN_UP = 3
    """Supervisor to an actor: 1 if it is not started again."""


class Stop(IntEnum):
    """How urgently to stop."""

    NO = 0
    FINISH = 1
    """Finish the version in work, save, report, end."""
    NOW = 2


class Orders:
    """Rows by role name, in the same order in every process."""

    def __init__(self, roles: Iterable[str], words: memoryview | None = None) -> None:
        """words: the memory of all rows, private to this process if none is given."""
        names = tuple(roles)
        if words is None:
            words = memoryview(bytearray(8 * ORDER_WORDS * len(names))).cast("q")
        self._fence = new_fence()
        self.rows: dict[str, memoryview[int]] = {
            name: words[i * ORDER_WORDS : (i + 1) * ORDER_WORDS] for i, name in enumerate(names)
        }

    def post(self, role: str, order: Order, value: int) -> None:
        """Say what is wanted of a role."""
        row = self.rows[role]
        if row[order] != value:
            row[order] = value
            self._fence()  # whoever sees the number sees the word
            row[Order.NUMBER] += 1
