"""Orders from the buffer to its actors; the other end is ActorOrders in actor/assembler.py."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tianji.channels.orders import ActorRows, Order, Poster


class BufferOrders:
    """Writes orders to actors, by index."""

    def __init__(self, actors: Sequence[ActorRows]) -> None:
        self._rows = [rows.orders for rows in actors]
        self._supervision = [rows.supervision for rows in actors]
        self._poster = Poster(self._rows)
        self._everybody = range(len(actors))

    def hurry(self, actor: int, round_number: int) -> None:
        """Ask for the unroll of this round now, however short it is."""
        self._poster.post(actor, Order.HURRY, round_number + 1)

    def hurry_no_more(self, actor: int) -> None:
        self._poster.post(actor, Order.HURRY, 0)

    def close(self, version: int, spared: Collection[int]) -> None:
        """Tell actors that gradients at this version are no longer wanted, except those spared."""
        told = [actor for actor in self._everybody if actor not in spared]
        self._poster.post_to(told, Order.CLOSED, version + 1)

    def reopen(self, version: int) -> None:
        """Tell actors for which this version was closed that its gradients are wanted again."""
        told = [actor for actor in self._everybody if self._rows[actor][Order.CLOSED] > version]
        self._poster.post_to(told, Order.CLOSED, version)

    def open(self, now_ns: int) -> None:
        """Tell actors since when gradients at the newest version are wanted."""
        self._poster.post_to(self._everybody, Order.OPENED_NS, now_ns)

    def call(self, word: int) -> None:
        """Tell actors which sums are wanted for an all-reduce (Call)."""
        self._poster.post_to(self._everybody, Order.CALL, word)

    def last_call(self) -> int:
        """Return the highest call so far, by this buffer or one before it."""
        return max(row[Order.CALL] for row in self._rows)

    def is_sum_lost(self, actor: int) -> bool:
        """Return whether an actor's host was lost since its lane was reset last."""
        return self._supervision[actor][Order.SUM_LOST] > self.resets_done(actor)

    def resets_done(self, actor: int) -> int:
        """Return for how many predecessors of an actor its lane was reset."""
        return self._rows[actor][Order.RESETS]

    def reset_done(self, actor: int, resets: int) -> None:
        """Tell an actor that its lane was reset for so many predecessors; it waits for that."""
        self._poster.post(actor, Order.RESETS, resets)
