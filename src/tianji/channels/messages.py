"""The Stream of messages from one worker to another: one sender, one receiver, a few slots.

A message is a tree of dicts and lists with numbers, text and arrays. It is written once into a slot
of shared memory, its text as JSON and its arrays behind it. The receiver reads the arrays in place
and then releases the slot.

    sender.send({"version": 3, "obs": obs})       message = receiver.take()
                                                  ... use message["obs"] ...
                                                  receiver.release()

Every slot is a memfd that grows to the largest message it has held. Both ends are at the first slot
when they start, so they start together: the supervisor ends one when the other has died, and
empties the slots (`empty`) before it starts them again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from tianji.channels.layout import ALIGN
from tianji.channels.memory import Segment, new_fence
from tianji.errors import ChannelError
from tianji.types import Array

Message: TypeAlias = Mapping[str, Any]
"""Declared as a TypedDict where it is sent."""
ARRAY = "$array"
"""Key of an array's place in a message's text: its type, its shape, its offset behind the text."""
_FULL, _NBYTES, _TEXT = 0, 1, 2  # words of a slot: whether it is full, its bytes, those of the text
_HEAD_BYTES = ALIGN


def empty(slots: Iterable[int]) -> None:
    """Empty the slots of a stream that nobody uses, by their file descriptors."""
    for fd in slots:
        os.ftruncate(fd, 0)


class MessageSender:
    """The only sender."""

    def __init__(self, slots: Sequence[int], wake: Callable[[], None]) -> None:
        """slots: file descriptors. wake: wakes the receiver."""
        self._fds = slots
        self._segments: list[Segment | None] = [None] * len(slots)
        self._num_sent = 0
        self._wake = wake
        self._fence = new_fence()

    def has_room(self) -> bool:
        segment = self._segments[self._num_sent % len(self._fds)]
        return segment is None or not segment.words(0, 1)[_FULL]

    def send(self, message: Message) -> None:
        if not self.has_room():
            raise ChannelError("The receiver of these messages has not released a slot.")
        arrays: list[tuple[Array, int]] = []
        behind = 0

        def place(value: Any) -> Any:
            nonlocal behind
            if isinstance(value, np.generic):
                return value.item()
            array = np.asarray(value)
            if array.dtype.hasobject:
                raise TypeError(f"{type(value).__name__} cannot be sent to another worker")
            arrays.append((array, behind))
            behind += _aligned(array.nbytes)
            return {ARRAY: [array.dtype.str, array.shape, arrays[-1][1]]}

        text = json.dumps(message, default=place).encode()
        start = _HEAD_BYTES + _aligned(len(text))
        memory = self._memory(start + behind)
        memory.memory[_HEAD_BYTES : _HEAD_BYTES + len(text)] = text
        for array, offset in arrays:
            np.ndarray(array.shape, array.dtype, memory.memory, start + offset)[...] = array
        words = memory.words(0, 3)
        words[_NBYTES], words[_TEXT] = start + behind, len(text)
        self._fence()  # everything is written before the slot counts as full
        words[_FULL] = 1
        self._num_sent += 1
        self._wake()

    def _memory(self, nbytes: int) -> Segment:
        """Return the memory of the next slot, large enough for this message."""
        index = self._num_sent % len(self._fds)
        segment = self._segments[index]
        if segment is None or segment.nbytes < nbytes:
            segment = Segment.allocate(self._fds[index], "a message", nbytes)
            self._segments[index] = segment
        return segment


class MessageReceiver:
    """The only receiver. It may hold as many messages as there are slots."""

    def __init__(self, slots: Sequence[int]) -> None:
        self._fds = slots
        self._segments: list[Segment | None] = [None] * len(slots)
        self._num_taken = self._num_released = 0
        self._fence = new_fence()

    def take(self) -> dict[str, Any] | None:
        """Return the next message, or None. Its arrays lie in the slot until it is released."""
        if self._num_taken - self._num_released == len(self._fds):
            return None
        index = self._num_taken % len(self._fds)
        segment = self._segments[index] or self._attach(index)
        if segment is None or not segment.words(0, 1)[_FULL]:
            return None
        self._fence()  # what is read now was written before the slot was full
        _, nbytes, text_bytes = segment.words(0, 3)
        if segment.nbytes < nbytes:
            segment = self._attach(index)
            assert segment is not None, "a full slot has memory"
        memory, start = segment.memory, _HEAD_BYTES + _aligned(text_bytes)

        def find(value: dict[str, Any]) -> Any:
            if ARRAY not in value:
                return value
            dtype, shape, offset = value[ARRAY]
            return np.ndarray(shape, dtype, memory, start + offset)

        text = bytes(memory[_HEAD_BYTES : _HEAD_BYTES + text_bytes])
        message: dict[str, Any] = json.loads(text, object_hook=find)
        self._num_taken += 1
        return message

    def _attach(self, index: int) -> Segment | None:
        if os.fstat(self._fds[index]).st_size == 0:
            return None
        self._segments[index] = segment = Segment.attach(self._fds[index])
        return segment

    def release(self) -> None:
        """Give the slot of the oldest message back; its arrays are void."""
        segment = self._segments[self._num_released % len(self._fds)]
        assert segment is not None and self._num_released < self._num_taken, "nothing is held"
        self._fence()  # everything was read before the slot counts as free
        segment.words(0, 1)[_FULL] = 0
        self._num_released += 1


def copied(tree: Any) -> Any:
    """Return a message's tree with copies of its arrays, for what outlives the slot."""
    if isinstance(tree, dict):
        return {key: copied(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [copied(value) for value in tree]
    return tree.copy() if isinstance(tree, np.ndarray) else tree


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGN) * ALIGN
