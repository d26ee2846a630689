"""An assembler turns steps into items: it is what differs between unrolls and gradients.

if assembler.may_begin(inference.newest()):
    started_ns = assembler.start_ns(newest)
    start = assembler.begin(unroll, round_number, started_ns, first_step_ns)
    while assembler.is_wanted():
        assembler.before_row()
        ...                                     # the actor makes one row
        if assembler.is_complete(unroll, row):
            break                               # the last row of the slot always completes it
    assembler.close_episodes(unroll, end)
    assembler.finish(unroll, end)
    ...                                         # the actor waits until assembler.due_ns
    assembler.post()                            # and then sends the slot
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from tianji.types import Unroll


class Start(NamedTuple):
    """The start of an item."""

    rng: np.random.Generator
    is_fresh: bool
    """The environments are reset; otherwise their episodes go on."""
    steps_before: int = 0
    """Environment steps of the whole run before this item, for schedules."""


class Assembler(Protocol):
    """Decides how an item begins, when it is complete and what it holds."""

    first_row: int
    """The first row that is made; those before it repeat the end of the previous item."""
    due_ns: int
    """Time at which the item in work may be sent, where it is given and known; else 0."""
    carries_episodes: bool
    """Episodes go on from one item to the next, so their environments' state is worth saving."""

    def may_begin(self, newest: int) -> bool:
        """Return whether an item may begin, if `newest` is the newest version of the policy."""
        ...

    def start_ns(self, newest: int) -> int:
        """Return the time at which the next item begins."""
        ...

    def begin(
        self, unroll: Unroll, round_number: int, started_ns: int, first_step_ns: int
    ) -> Start: ...

    def is_wanted(self) -> bool:
        """Return whether the item in work is still wanted; asked before every row."""
        ...

    def before_row(self) -> None:
        """Prepare the policy for the next row."""
        ...

    def is_complete(self, unroll: Unroll, row: int) -> bool:
        """Return whether the item is complete with this row."""
        ...

    def close_episodes(self, unroll: Unroll, end: int) -> None:
        """Mark where the episodes of the item end, before they are counted."""
        ...

    def finish(self, unroll: Unroll, end: int) -> None:
        """Turn the rows before `end` into the item."""
        ...

    def post(self) -> None:
        """Publish what belongs to the item and is not in its slot; the slot is sent next."""
        ...

    def drop(self, unroll: Unroll, end: int) -> None:
        """Give up the item in work."""
        ...

    def state(self) -> dict[str, Any] | None:
        """Return what the next item needs; None where nothing is known yet."""
        ...

    def load_state(self, state: dict[str, Any]) -> None: ...
