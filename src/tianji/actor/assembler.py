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

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from tianji.algorithms.interface import Acting
from tianji.channels.interface import BoardReader, Bytes
from tianji.channels.orders import ActorRows, Order
from tianji.types import Array, Unroll


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

    def start_ns(self, newest: int) -> int:
        """Return the time at which the next item begins."""

    def begin(
        self, unroll: Unroll, round_number: int, started_ns: int, first_step_ns: int
    ) -> Start: ...

    def is_wanted(self) -> bool:
        """Return whether the item in work is still wanted; asked before every row."""

    def before_row(self) -> None:
        """Prepare the policy for the next row."""

    def is_complete(self, unroll: Unroll, row: int) -> bool:
        """Return whether the item is complete with this row."""

    def close_episodes(self, unroll: Unroll, end: int) -> None:
        """Mark where the episodes of the item end, before they are counted."""

    def finish(self, unroll: Unroll, end: int) -> None:
        """Turn the rows before `end` into the item."""

    def post(self) -> None:
        """Publish what belongs to the item and is not in its slot; the slot is sent next."""

    def drop(self, unroll: Unroll, end: int) -> None:
        """Give up the item in work."""

    def state(self) -> dict[str, Any] | None:
        """Return what the next item needs; None where nothing is known yet."""

    def load_state(self, state: dict[str, Any]) -> None: ...


class Inference:
    """Acts in this process with the version of the policy that was read last."""

    is_elsewhere = False
    """Another process infers, so that this one never waits for it in collect()."""

    def __init__(self, acting: Acting, board: BoardReader, read: Callable[[Bytes], None]) -> None:
        """read: copies the board's bytes into the model that `acting` uses."""
        self.begin = acting.begin
        self.act = acting.act
        self._acting = acting
        self.runs_alone: bool = getattr(acting, "runs_alone", False)
        """Inference runs by itself between submit() and collect(), as on a GPU."""
        self.is_ready: Callable[[], bool] = getattr(acting, "is_ready", lambda: True)
        """Returns whether the row that was submitted can be collected now."""
        self.finish = acting.finish
        self.newest = board.version
        self._board = board
        self._read = read
        self.version = -1
        """The version that acts; -1 before the first one."""

    @property
    def uploaded_bytes(self) -> int:
        """Return the bytes that inference has copied to a GPU."""
        return int(getattr(self._acting, "uploaded_bytes", 0))

    def submit(self, unroll: Unroll, t: int) -> None:
        self._acting.submit(unroll, t)

    def collect(self, unroll: Unroll, t: int) -> Array:
        return self._acting.collect(unroll, t)

    def refresh(self) -> None:
        """Read the newest version if it is another one."""
        if self.newest() != self.version:
            self.version = self._board.latest(self._read)


class ActorOrders:
    """Reads an actor's orders, one word at a time."""

    def __init__(self, rows: ActorRows) -> None:
        self._orders = rows.orders
        self._supervision = rows.supervision
        self._is_lane_ready = False

    def is_lane_ready(self) -> bool:
        """Return whether the lane was reset after the last actor on it died. Once it was, it stays
        ready as long as this actor lives."""
        if not self._is_lane_ready:
            self._is_lane_ready = self._orders[Order.RESETS] == self._supervision[Order.RESETS]
        return self._is_lane_ready

    def is_hurried(self, round_number: int) -> bool:
        """Return whether the unroll of this round is to be sent now, however short it is."""
        return self._orders[Order.HURRY] > round_number

    def is_closed(self, version: int) -> bool:
        """Return whether gradients at this version are no longer wanted."""
        return self._orders[Order.CLOSED] > version

    def opened_ns(self) -> int:
        """Return since when gradients at the newest version are wanted."""
        return self._orders[Order.OPENED_NS]

    def call(self) -> int:
        """Return the word that says which sums are wanted for an all-reduce (Call)."""
        return self._orders[Order.CALL]

    def num_predecessors(self) -> int:
        """Return how many processes have run this actor before and are gone."""
        return self._supervision[Order.RESETS]
