"""A policy that is asked for: the request and reply of parameter servers, on top of a Board.

    actor                                     learner
    grant = sender.reserve()   # asks; None   batches.take()   # between two versions: answers all
    grant = sender.reserve()   # answered                      # that have asked, takes a batch
    policy.latest(read)
    ... makes the item with this version ...
    sender.send(grant.slot, stamp)

The bytes move as on any Board. What differs is the waiting: an actor that has a slot asks for the
policy and begins its item when the learner has answered, and the learner answers only between two
versions. Nobody blocks: an actor without an answer has nothing to do, and sleeps on its bell as
when it has no grant. A request stands until it is answered, so a learner that takes over after a
death answers those of its predecessor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tianji.channels.interface import Batches, BoardReader, Bytes, Grant, Sender
from tianji.channels.requests import Answerer, Asker
from tianji.types import Array, Batch, Stamp


class RequestedReader:
    """A reader that shows one version from the answer to a request until the next one is due."""

    def __init__(self, board: BoardReader, asker: Asker) -> None:
        self._board = board
        self._asker = asker
        self._is_asking = False
        self._answer = -1
        """The version of the item in work; -1 while there is none."""

    def ask(self) -> None:
        self._asker.ask(0, 0)  # only its number counts: there is nothing to choose
        self._is_asking = True

    def forget(self) -> None:
        """The item is sent or void: the next one needs another answer."""
        self._is_asking = False
        self._answer = -1

    def is_waiting(self) -> bool:
        """Return whether a request was not answered yet."""
        if self._is_asking and self._asker.is_answered():
            self._is_asking = False
            # Not the version of the answer: a newer one may have been posted since, and the buffer
            # takes an item that begins now for one of the newest version.
            self._answer = self._board.version()
        return self._is_asking

    def version(self) -> int:
        """The version of the item in work; while there is none, the latest one."""
        return self._board.version() if self._answer < 0 else self._answer

    def latest(self, read: Callable[[Bytes], None]) -> int:
        version = self._board.latest(read)
        if self._answer >= 0:
            self._answer = version
        return version


class AskingSender:
    """A lane whose slots are handed to the actor when the policy that it asked for has come."""

    def __init__(self, sender: Sender, policy: RequestedReader) -> None:
        self._sender = sender
        self._policy = policy
        self._grant: Grant | None = None
        """The slot for which the policy was asked."""
        self.arrays: dict[str, Array] = sender.arrays
        self.unroll = sender.unroll
        self.is_stale = sender.is_stale
        self.is_waiting = policy.is_waiting

    def attach(self) -> None:
        self._grant = None
        self._policy.forget()
        self._sender.attach()

    def reserve(self) -> Grant | None:
        if self._grant is None:
            self._grant = self._sender.reserve()
            if self._grant is None:
                return None
            self._policy.ask()
        if self._policy.is_waiting():
            return None
        grant, self._grant = self._grant, None
        return grant

    def send(self, slot: int, stamp: Stamp) -> None:
        self._policy.forget()
        self._sender.send(slot, stamp)


class AnsweringBatches:
    """The learner's end of its batches, which answers all requests before each attempt to take one:
    that is between two versions, also while there is no batch."""

    def __init__(
        self,
        batches: Batches,
        answerer: Answerer,
        version: Callable[[], int],
        wake_actors: Sequence[Callable[[], None]],
    ) -> None:
        """version: returns the latest version. wake_actors: ring their bells, by lane."""
        self._batches = batches
        self._answerer = answerer
        self._version = version
        self._wake_actors = wake_actors
        self.finish = batches.finish

    def take(self) -> Batch | None:
        lanes = self._answerer.waiting()
        if len(lanes):
            self._answerer.answer(lanes, self._version())
            for lane in lanes:
                self._wake_actors[lane]()
        return self._batches.take()
